"""Every translation against PyTorch: its samples exported, run by ONNX Runtime, and held to the operator itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.seams.base import private
from onnxsmith.base.settings import Verify
from onnxsmith.exporter.translating import exporter_hooks
from onnxsmith.exporter.translating.overloads import overloads
from onnxsmith.exporter.translations import base
from onnxsmith.exporter.translations.base import Sample, Translation
from tests.translations import INSTALLED, NAMES, Calls, existing_samples, is_expected, known, operator, tensors


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


@pytest.mark.parametrize("name", NAMES)
def test_a_translation_gives_what_pytorch_gives(name: str) -> None:
    torch.manual_seed(0)
    translation = known(name)
    samples = existing_samples(translation)
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
    for sample in existing_samples(translation):
        if sample.dynamic:
            exported(translation, [sample], open_axes(sample))


def open_axes(sample: Sample) -> dict[str, dict[int, str]]:
    return {f"tensors.{index}": dict(found) for index, found in sample.dynamic.items()}


@pytest.mark.parametrize("name", INSTALLED)
def test_a_translation_has_targets_that_exist(name: str) -> None:
    """In the releases that its lifetime includes a name exists, in others it does not."""
    translation = known(name)
    functions = [path for path in translation.lifetimes if path not in translation.targets]
    assert translation.targets or translation.functions or functions
    for target in translation.targets:
        assert bool(list(overloads(target))) is is_expected(translation, target), target
    for path in functions:
        assert (private(path) is not None) is is_expected(translation, path), path


def test_an_operator_that_is_gone_is_not_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Translation):
        targets = ("aten::gone_since_long", "aten::relu")

        def decompose(self, x: Any) -> Any:
            return x

        def samples(self) -> Iterator[Sample]:
            yield Sample((torch.ones(2),))

    monkeypatch.setattr(exporter_hooks, "translations", lambda: {"gone": Gone()})
    found = exporter_hooks._of_libraries.__wrapped__(frozenset([""]))
    assert list(found) == list(overloads("aten::relu"))


def test_no_translation_reaches_for_an_operator_while_it_is_imported() -> None:
    """If the operator were gone, no translation at all could be imported."""
    reached = [
        f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted(Path(base.__file__).parent.glob("*.py"))
        for node in at_import(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch.ops")
    ]
    assert not reached


def at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module that are run when it is imported."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield node
            yield from at_import(node)


def test_what_is_run_at_import() -> None:
    code = "a = torch.ops.aten.relu\nclass B:\n    c = torch.ops.aten.gelu\n    def d():\n        torch.ops.aten.elu"
    names = [ast.unparse(node) for node in at_import(ast.parse(code)) if isinstance(node, ast.Attribute)]
    assert [name for name in names if name.count(".") == 3] == ["torch.ops.aten.relu", "torch.ops.aten.gelu"]
