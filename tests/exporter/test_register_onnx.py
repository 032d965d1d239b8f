"""Translations that write ONNX nodes: functions of onnxscript, and symbolics of torch's older exporter."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnxscript import BOOL, FLOAT, script
from onnxscript import opset18 as op
from torch import nn
from torch.onnx.symbolic_helper import parse_args

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.exporter.translating.register import forget, registered
from onnxsmith.graph.files.load import load
from tests.exports import assert_follows

X = torch.rand(2, 3) - 0.5


@torch.library.custom_op("test_onnx::halved", mutates_args=())
def halved(x: torch.Tensor, times: int, add: float = 0.0) -> torch.Tensor:
    return torch.from_numpy(x.numpy(force=True) * (0.5 * times) + add)


@halved.register_fake
def _(x: torch.Tensor, times: int, add: float = 0.0) -> torch.Tensor:
    return torch.empty_like(x)


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.test_onnx.halved(x, 3) + 1


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    for one in registered():
        forget(one.target)


def export(module: nn.Module, *args: Any, **options: Any) -> Any:
    return onnxsmith.export(module, args, dynamic={"x": [0]}, **options)


def kinds(module: nn.Module, x: torch.Tensor, **options: Any) -> list[str]:
    """The operators of a graph that agrees with the module, with fewer rows and with more."""
    result = export(module, x, **options)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert_follows(result.model, module, *((torch.rand(rows, 3) - 0.5,) for rows in (1, 5)))
    return [node.op_type for node in result.model.graph]


def traced(x, times, add=0.0):  # type: ignore[no-untyped-def]
    return op.Add(op.Mul(x, op.Constant(value_float=0.5 * times)), op.Constant(value_float=add))


@script()
def scripted(x: FLOAT, times: int = 1, add: float = 0.0) -> FLOAT:
    half = op.Constant(value_float=0.5)
    return x * half * op.CastLike(op.Constant(value_int=times), x) + op.CastLike(op.Constant(value_float=add), x)


def symbolic(g: Any, x: Any, times: int, add: float) -> Any:
    assert x.type().scalarType() == "Float"
    assert x.type().dim() == 2
    found = g.op("Mul", x, g.op("Constant", value_t=torch.tensor(0.5 * times)))
    return g.op("Add", found, add).setType(x.type())


@parse_args("v", "i", "f")  # type: ignore[untyped-decorator]
def parsed(g: Any, x: Any, times: int, add: float) -> Any:
    return g.op("onnx::Elu", g.op("Mul", g.op("Abs", x), 0.5 * times), alpha_f=add)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("target", ["test_onnx::halved", "packet", "overload"])
@pytest.mark.parametrize("translation", [traced, scripted, symbolic, [traced]])
def test_what_people_have(target: Any, translation: Any) -> None:
    packet = torch.ops.test_onnx.halved
    onnxsmith.register({"packet": packet, "overload": packet.default}.get(target, target), translation)
    assert "Mul" in kinds(Halves(), X)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("translation", [traced, scripted, symbolic])
def test_a_table_is_for_one_export(translation: Any) -> None:
    table = {torch.ops.test_onnx.halved.default: translation}
    assert "Mul" in kinds(Halves(), X, custom_translation_table=table)
    assert registered() == ()
    with pytest.raises(OnnxsmithError) as caught:
        export(Halves(), X)
    assert caught.value.problem.id == "export/no-translation"


@pytest.mark.usefixtures("compared_once")
def test_arguments_are_parsed_as_torch_did() -> None:
    class Positive(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.test_onnx.halved(x.abs(), 3)

    onnxsmith.register("test_onnx::halved", parsed)
    assert "Elu" in kinds(Positive(), X)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, times, add=0.0: op.Mul(x, op.Constant(value_float=0.5)),
        lambda g, x, times, add: g.op("Mul", x, 0.25),
    ],
)
def test_a_wrong_one_is_found(wrong: Any) -> None:
    result = export(Halves(), X, custom_translation_table={torch.ops.test_onnx.halved.default: wrong})
    assert result.report.verdict is Verdict.DIFFERENT


@pytest.mark.usefixtures("compared_once")
def test_a_table_takes_the_place_of_every_other_translation() -> None:
    class Adds(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x + x, torch.erf(x)

    def subtracts(self, other, alpha=1.0):  # type: ignore[no-untyped-def]
        return op.Sub(self, op.Neg(other))

    def with_erf(x):  # type: ignore[no-untyped-def]
        return op.Erf(op.Identity(x))

    table = {torch.ops.aten.add.Tensor: subtracts, torch.ops.aten.erf.default: with_erf}
    found = kinds(Adds(), X, custom_translation_table=table, simplify=False)
    assert "Sub" in found
    assert "Add" not in found
    assert found.count("Erf") == 1


@pytest.mark.usefixtures("compared_once")
def test_the_first_function_whose_dtypes_fit_is_called() -> None:
    def of_bool(self: BOOL, other: BOOL) -> BOOL:
        return op.And(self, op.Identity(other))

    def of_float(self: FLOAT, other: FLOAT) -> BOOL:
        return op.And(op.Cast(self, to=9), op.Cast(other, to=9))

    class Both(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.logical_and(x, x), torch.logical_and(x > 0, x > 0.1)

    table = {torch.ops.aten.logical_and.default: [of_float, of_bool]}
    assert kinds(Both(), X, custom_translation_table=table, simplify=False).count("And") == 2


@pytest.mark.usefixtures("compared_once")
def test_a_python_function_of_the_trace_is_a_target() -> None:
    class Sizes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.full((), x.shape[0] * 7, dtype=torch.float32)

    def multiplied(a, b):  # type: ignore[no-untyped-def]
        return op.Neg(op.Mul(a, op.Neg(b)))

    assert "Neg" in kinds(Sizes(), X, custom_translation_table={operator.mul: multiplied}, simplify=False)


def gone(g: Any, x: Any, times: Any, add: Any) -> Any:
    return g.at("mul", x, x.node())


@pytest.mark.parametrize(
    ("translation", "options", "id_"),
    [
        (gone, {}, "register/symbolic"),
        (traced, {"deliver": "plugin"}, "register/delivery"),
        ([], {}, "register/signature"),
        ([traced, lambda x, times, add: x], {}, "register/signature"),
        ("Mul", {}, "register/signature"),
        (lambda g, x: x, {}, "register/signature"),
    ],
)
def test_refused(translation: Any, options: Any, id_: str) -> None:
    def attempt() -> None:
        onnxsmith.register("test_onnx::halved", translation, **options)
        export(Halves(), X)

    with pytest.raises(OnnxsmithError) as caught:
        attempt()
    assert caught.value.problem.id == id_


def test_refused_in_a_table() -> None:
    for target in (3, "aten::nothing"):
        with pytest.raises(OnnxsmithError) as caught:
            export(Halves(), X, custom_translation_table={target: traced})
        assert caught.value.problem.id == "register/unknown-operator"
    with pytest.raises(OnnxsmithError) as caught:
        export(Halves(), X, custom_translation_table={"aten::add": traced}, strategy="torchscript")
    assert "torchscript" in str(caught.value).lower()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    @staticmethod
    def symbolic(g: Any, x: Any, by: float) -> Any:
        return g.op("Neg", g.op("Mul", x, g.op("Constant", value_t=torch.tensor(-by)))).setType(x.type())


class Scales(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return Scaled.apply(x, 3.0) + 1  # type: ignore[no-untyped-call]


def scaled(x, by):  # type: ignore[no-untyped-def]
    return op.Neg(op.Mul(x, op.Constant(value_float=-by)))


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("translation", [Scaled.symbolic, scaled])
def test_an_autograd_function(translation: Any) -> None:
    onnxsmith.register(Scaled, translation)
    assert kinds(Scales(), X, simplify=False) == ["Constant", "Mul", "Neg", "Add"]


def test_a_wrong_one_of_an_autograd_function_is_found() -> None:
    onnxsmith.register(Scaled, lambda g, x, by: g.op("Mul", x, by + 1))
    assert export(Scales(), X, strategy="torch-export").report.verdict is Verdict.DIFFERENT


def test_a_node_that_no_runtime_knows_is_refused_with_the_way_to_deliver_it() -> None:
    onnxsmith.register("test_onnx::halved", lambda g, x, times, add: g.op("my.domain::Half", x, times_i=times))
    with pytest.raises(OnnxsmithError) as caught:
        export(Halves(), X, strategy="torch-export")
    assert caught.value.problem.id == "runtime/unknown-operator"
    assert 'deliver="plugin"' in caught.value.problem.fix


@pytest.mark.usefixtures("compared_once")
def test_the_file_runs() -> None:
    onnxsmith.register("test_onnx::halved", symbolic)
    result = export(Halves(), X)
    answer = onnxsmith.run(result.model, {"x": X.numpy()}).outputs["output"]
    np.testing.assert_allclose(answer, X.numpy() * 1.5 + 1, rtol=1e-6)


@torch.library.custom_op("test_onnx::widened", mutates_args=())
def widened(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


@widened.register_fake
def _(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)  # wrong: the result has as many columns as w


class Widens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.rand(3, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.ops.test_onnx.widened(x, self.w))


def test_a_wrong_shape_of_an_operator_is_corrected_in_the_file(tmp_path: Path) -> None:
    onnxsmith.register("test_onnx::widened", lambda x, w: onnxsmith.onnx_op("MatMul", x, w, version=13))
    result = export(Widens(), X, output=tmp_path / "m.onnx")
    (output,) = load(tmp_path / "m.onnx").graph.outputs
    assert output.shape is not None
    assert [str(dim) for dim in output.shape][1:] == ["8"]
    assert "was declared as float[" in result.report.headline
    inner = [value for node in load(tmp_path / "m.onnx").graph for value in node.outputs if value is not output]
    assert all(value.name == output.name or value.shape is None for value in inner)
