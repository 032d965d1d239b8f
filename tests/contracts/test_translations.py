"""Every translation against PyTorch: its samples exported, run by ONNX Runtime, and held to the operator itself."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import onnxsmith
from onnxsmith.exporter.translating.exporter_hooks import translations
from onnxsmith.exporter.translating.overloads import overloads
from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.report.parts.verification import Verification
from onnxsmith.report.verdict import Verdict
from onnxsmith.settings import Verify

NAMES = sorted(
    name
    for name, one in translations().items()
    if not one.library or importlib.util.find_spec(one.library.partition(".")[0]) is not None
)
"""Translations whose operators exist here: torchao has no wheels for every system."""

SAMPLE = [name if place % 3 == 0 else pytest.param(name, marks=pytest.mark.whole) for place, name in enumerate(NAMES)]
"""Every third translation; `make test-all` takes all. Each is exported, which takes seconds."""


class Calls(torch.nn.Module):
    """Calls of operators, one after the other: tensors come as inputs, everything else is a constant."""

    def __init__(self, calls: Sequence[tuple[Any, Sample]]) -> None:
        super().__init__()
        self.calls = calls

    def forward(self, *tensors: torch.Tensor) -> list[Any]:
        given = iter(tensors)
        results = []
        for op, sample in self.calls:
            args, kwargs = pytree.tree_map(
                lambda leaf: next(given) if isinstance(leaf, torch.Tensor) else leaf, (sample.args, dict(sample.kwargs))
            )
            result = op(*args, **kwargs) if sample.around is None else sample.around(op, *args, **kwargs)
            results.append([leaf for leaf in pytree.tree_leaves(result) if leaf is not None])
        return results


def known(name: str) -> Translation:
    """The translation, once its library has defined the operators. Importing torchao takes a second."""
    translation = translations()[name]
    if translation.library:
        with warnings.catch_warnings(action="ignore"):  # torchao warns of kernels for other machines
            importlib.import_module(translation.library)
    return translation


def operator(translation: Translation, sample: Sample) -> Any:
    if not translation.targets:
        return translation.functions[0]
    target = sample.target or translation.targets[0]
    found = list(overloads(target))
    assert found, f"this torch has no {target}"
    packet = getattr(getattr(torch.ops, target.partition("::")[0]), target.partition("::")[2].partition(".")[0])
    return found[0] if "." in target else packet


def tensors(samples: Sequence[Sample]) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves([(sample.args, dict(sample.kwargs)) for sample in samples])
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def exported(translation: Translation, samples: Sequence[Sample], dynamic: dict[str, dict[int, str]]) -> None:
    module = Calls([(operator(translation, sample), sample) for sample in samples])
    result = onnxsmith.export(
        module,
        tensors(samples),
        dynamic=dynamic,
        strategy="torch-export",
        simplify=False,
        verify=Verify(tolerance=translation.kernel_error or None),
    )
    differs = [check for check in result.report.part(Verification).outputs if not check.equal]
    # the values agree; of tables that these few inputs do not reach the check says that it cannot tell
    assert result.report.verdict in (Verdict.DONE, Verdict.CANNOT_TELL), differs
    assert not differs


@pytest.mark.parametrize("name", SAMPLE)
def test_a_translation_gives_what_pytorch_gives(name: str) -> None:
    torch.manual_seed(0)
    translation = known(name)
    samples = list(translation.samples())
    assert samples
    fixed = [sample for sample in samples if not sample.dynamic]
    if fixed:
        exported(translation, fixed, {})
    for sample in [sample for sample in samples if sample.dynamic][:1]:
        exported(translation, [sample], open_axes(sample))


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_a_translation_follows_every_size(name: str) -> None:
    torch.manual_seed(0)
    translation = known(name)
    for sample in translation.samples():
        if sample.dynamic:
            exported(translation, [sample], open_axes(sample))


def open_axes(sample: Sample) -> dict[str, dict[int, str]]:
    return {f"tensors.{index}": dict(found) for index, found in sample.dynamic.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_translation_has_targets_that_exist(name: str) -> None:
    translation = known(name)
    assert translation.targets or translation.functions
    for target in translation.targets:
        assert list(overloads(target)), target
