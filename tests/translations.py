"""The samples of translations: which exist in the installed releases, and how they are called and compared."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import torch
from torch.utils import _pytree as pytree

from onnxsmith.base.library_versions import Lifetime
from onnxsmith.exporter.translating.exporter_hooks import translations
from onnxsmith.exporter.translating.overloads import overloads
from onnxsmith.exporter.translations.base import Sample, Translation

INSTALLED = sorted(
    name
    for name, one in translations().items()
    if not one.library or importlib.util.find_spec(one.library.partition(".")[0]) is not None
)
"""Translations whose library is installed: torchao has no wheels for every system."""

_version = functools.cache(metadata.version)


def is_expected(translation: Translation, name: str) -> bool:
    """Whether the installed release of the library has a target or a function, by what the translation says."""
    version = _version(translation.library.partition(".")[0] or "torch")
    return translation.lifetimes.get(name, Lifetime()).includes(version)


def expected(translation: Translation) -> list[str]:
    """The targets and the named functions that exist here, by what the translation says."""
    names = dict.fromkeys((*translation.targets, *translation.lifetimes))
    return [name for name in names if is_expected(translation, name)]


NAMES = [name for name in INSTALLED if translations()[name].functions or expected(translations()[name])]
"""Translations of which something exists in the installed releases."""


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


def existing_samples(translation: Translation) -> list[Sample]:
    """The samples but for those of targets that the installed release lacks, by what the translation says."""
    first = translation.targets[0] if translation.targets else ""
    return [one for one in translation.samples() if is_expected(translation, one.target or first)]


def tensors(samples: Sequence[Sample]) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves([(sample.args, dict(sample.kwargs)) for sample in samples])
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
