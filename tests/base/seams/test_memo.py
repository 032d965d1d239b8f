"""What is remembered from export to export changes no export."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import onnxscript
import pytest
import torch
from onnxscript import opset20 as op20
from onnxscript.function_libs.torch_lib import registration
from torch.onnx._internal.exporter import _registration

from onnxsmith.base.seams.base import private
from onnxsmith.base.seams.torch import memo

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
"""What torch's exporter says of itself; `export` silences it."""


class _Small(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + torch.nn.functional.silu(x)


def _exported(**options: Any) -> ir.Model:
    program = torch.onnx.export(_Small().eval(), (torch.ones(2, 3),), dynamo=True, verbose=False, **options)
    assert program is not None
    return program.model


def test_the_same_model_comes_out() -> None:
    plain = ir.to_proto(_exported()).SerializeToString(deterministic=True)
    with memo.memoised():
        for _ in range(2):
            assert ir.to_proto(_exported()).SerializeToString(deterministic=True) == plain


def test_each_opset_has_its_own_translations() -> None:
    with memo.memoised():
        assert [_exported(opset_version=opset).opset_imports[""] for opset in (20, 18, 20)] == [20, 18, 20]


def test_a_translation_of_one_export_is_no_other_ones() -> None:
    target = torch.ops.aten.relu.default
    with memo.memoised():
        mine = _registration.ONNXRegistry.from_torchlib(opset_version=20)
        before = len(mine.get_decomps(target))
        mine.register_op(target, lambda x: x)
        assert len(mine.get_decomps(target)) == before + 1
        assert len(_registration.ONNXRegistry.from_torchlib(opset_version=20).get_decomps(target)) == before


def standing() -> list[Any]:
    """What stands in torch where something is replaced."""
    return [private(path) for path, _ in memo._replacements()]


def test_afterwards_torch_is_as_it_was() -> None:
    before = standing()
    with memo.memoised():
        assert all(own != theirs for own, theirs in zip(standing(), before, strict=True))
    assert standing() == before


@pytest.mark.parametrize("path", memo.REACHES)
def test_exports_go_on_without_a_private_name(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = private
    monkeypatch.setattr(memo, "private", lambda asked: None if asked == path else known(asked))
    with memo.memoised():
        assert standing() == [private(one) for one, _ in memo._replacements()]


def test_operators_that_come_later_are_found() -> None:
    with memo.memoised():
        _exported()
    library = torch.library.Library("onnxsmith_memo", "DEF")  # type: ignore[no-untyped-call]
    library.define("twice(Tensor x) -> Tensor")  # type: ignore[no-untyped-call]
    library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")  # type: ignore[no-untyped-call]

    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.ops.onnxsmith_memo.twice(x)

    with memo.memoised():
        program = torch.onnx.export(Twice().eval(), (torch.ones(2),), dynamo=True, verbose=False)
    assert program is not None
    assert [node.op_type for node in program.model.graph] == ["Add"]


def test_kernels_are_told_as_torch_tells_them() -> None:
    op = torch.ops.aten.relu.default
    key = torch._C.DispatchKey.AutogradXLA
    with memo.memoised():
        try:
            op.py_impl(key)(lambda x: x)
            assert key in op.py_kernels
            with pytest.raises(RuntimeError, match="override"):
                op.py_impl(key)(lambda x: x)
        finally:
            op.py_kernels.pop(key, None)


def test_what_is_composite_is_asked_for_once() -> None:
    with memo.memoised():
        _exported()
        before = memo._composite_operators()
        _exported()
        assert memo._composite_operators() is before


def test_a_translation_whose_operator_comes_later_is_found() -> None:
    """As torchvision's, where it is imported after an export."""
    target = "onnxsmith_memo_later::thrice"

    def thrice(x: Any) -> Any:
        return op20.Mul(x, 3.0)

    known = registration.default_registry
    known.register(onnxscript.values.TracedOnnxFunction(onnxscript.values.Opset("onnxsmith.test", 1), thrice), target)
    try:
        with memo.memoised():
            _registration.ONNXRegistry.from_torchlib()
        library = torch.library.Library("onnxsmith_memo_later", "DEF")  # type: ignore[no-untyped-call]
        library.define("thrice(Tensor x) -> Tensor")  # type: ignore[no-untyped-call]
        library.impl("thrice", lambda x: x * 3, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        with memo.memoised():
            found = _registration.ONNXRegistry.from_torchlib()
        assert found.is_registered(torch.ops.onnxsmith_memo_later.thrice.default)
    finally:
        known._registry.pop(target)


def test_a_decomposition_that_comes_later_is_found() -> None:
    library = torch.library.Library("onnxsmith_memo_table", "DEF")  # type: ignore[no-untyped-call]
    library.define("twice(Tensor x) -> Tensor")  # type: ignore[no-untyped-call]
    library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    op, table = torch.ops.onnxsmith_memo_table.twice.default, torch._decomp.decomposition_table

    class Twice(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.ops.onnxsmith_memo_table.twice(x)

    def kinds() -> list[str]:
        program = torch.onnx.export(Twice().eval(), (torch.ones(2),), dynamo=True, verbose=False)
        assert program is not None
        return [node.op_type for node in program.model.graph]

    with memo.memoised():
        _exported()
        table[op] = lambda x: x + x
        try:
            assert kinds() == ["Add"]
            table[op] = lambda x: x - (-x)  # another in its place
            assert kinds() == ["Neg", "Sub"]
        finally:
            del table[op]


def test_an_operator_that_is_defined_anew_is_found() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.ops.onnxsmith_memo_anew.change(x)

    for function, kind in ((lambda x: x + x, "Add"), (lambda x: x * x, "Mul")):
        with torch.library._scoped_library("onnxsmith_memo_anew", "DEF") as library:
            library.define("change(Tensor x) -> Tensor")
            library.impl("change", function, "CompositeImplicitAutograd")
            with memo.memoised():
                program = torch.onnx.export(Module().eval(), (torch.ones(2),), dynamo=True, verbose=False)
            assert program is not None
            assert [node.op_type for node in program.model.graph] == [kind]
