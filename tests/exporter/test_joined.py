"""Branches on sizes of which neither side is right for all: both sides in one graph, chosen by an If."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import sympy
import torch
from onnx.reference import ReferenceEvaluator
from torch import nn
from torch.utils._sympy import functions

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.exporter.tracing.size_branches import SizeBranch
from onnxsmith.exporter.tracing.size_conditions import holds
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery.alternative_models import either


class Mutual(nn.Module):
    """Pairs of rows of which each is the nearest to the other; loops over the shorter side."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        apart = (left[:, None] - right[None]).abs().sum(2)
        near, in_right = apart.min(1)
        near_too, in_left = apart.min(0)
        at = torch.arange(min(apart.size(0), apart.size(1)))
        if apart.size(0) <= apart.size(1):
            keep = at == in_left[in_right][: len(at)]
            return near[keep], torch.stack([at, in_right], 1)[keep]
        keep = at == in_right[in_left][: len(at)]
        return near_too[keep], torch.stack([in_left, at], 1)[keep]


class Thinned(nn.Module):
    """Two branches on sizes behind a layer that both sides share."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        if x.shape[1] > 8:
            x = x[:, ::2]
        if x.shape[0] % 2:
            x = x * 3
        return self.layer(x)


def test_both_sides_are_in_the_graph() -> None:
    example = (torch.rand(5, 3), torch.rand(6, 3))
    result = onnxsmith.export(Mutual(), example, dynamic=["left:0=n", "right:0=m"])
    assert result.ok
    capture = result.report.part(Capture)
    assert "both sides" in capture.how
    line = Mutual.forward.__code__.co_firstlineno + 5
    assert [note for note in capture.notes if f":{line}" in note and "If" in note]
    kinds = [node.op_type for node in result.model.graph]
    assert kinds.count("If") == 1
    assert kinds.count("ArgMin") == 2  # what both sides compute is there once
    assert "NonZero" not in kinds


def test_several_branches_and_weights_that_are_stored_once() -> None:
    result = onnxsmith.export(Thinned(), (torch.rand(2, 6, 4),), dynamic="x:0=batch,1=length")
    assert result.ok
    weights = [value for value in walk.initializers(result.model) if value.const_value.size == 16]
    assert len(weights) == 1
    assert {"MatMul", "If"} <= {node.op_type for node in result.model.graph}


def test_a_module_without_another_side_is_refused() -> None:
    class Bounded(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.shape[1] > 16:
                raise ValueError("too long")
            return x * 2

    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(Bounded(), (torch.rand(2, 12),), dynamic="x:1=length", strategy="torch-joined")
    assert caught.value.problem.id == "forward/size-compared"


def test_a_condition_that_is_the_wrong_way_round_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(branches: list[SizeBranch]) -> object:
        return holds([SizeBranch(one.line, ~one.condition, one.axes) for one in branches])

    monkeypatch.setattr("onnxsmith.exporter.strategies._size_sides.holds", turned)
    result = onnxsmith.export(Thinned(), (torch.rand(2, 6, 4),), dynamic="x:1=length", strategy="torch-joined")
    assert not result.ok
    assert "DIFFERENT" in result.report.headline


class Halved(nn.Module):
    """A loop on sizes: a path for each number of turns, which follows from both sizes together."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(2, 2, 3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while min(x.shape[2], x.shape[3]) > 4:
            x = torch.relu(self.down(x))
        return x


@pytest.mark.parametrize("strategy", ["torch-joined", "torch-all-sides"])
def test_paths_that_do_not_cover_larger_sizes_are_refused(strategy: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(Halved(), (torch.rand(1, 2, 20, 24),), dynamic="x:2=h,3=w", strategy=strategy)
    assert caught.value.problem.id == "forward/size-compared"
    assert "more sides" in caught.value.problem.what


_H, _W = (sympy.Symbol(name, integer=True, positive=True) for name in "hw")
_CONDITIONS = {
    "order": (_H <= _W, lambda h, w: h <= w),
    "not equal": (sympy.Ne(_H, _W), lambda h, w: h != w),
    "remainder": (sympy.Eq(functions.Mod(_H + 3, 4), 1), lambda h, w: (h + 3) % 4 == 1),
    "of a negative": (sympy.Eq(functions.PythonMod(_H - _W, 4), 1), lambda h, w: (h - w) % 4 == 1),
    "quotient": (sympy.Eq(functions.FloorDiv(_H - _W, 4), -1), lambda h, w: (h - w) // 4 == -1),
    "rounded up": (functions.CeilToInt(functions.IntTrueDiv(_H, 4)) > 2, lambda h, w: -(-h // 4) > 2),
    "rounded": (functions.TruncToInt(0.7 * functions.ToFloat(_H)) < _W, lambda h, w: int(0.7 * h) < w),
    "both": (sympy.And(_H > 3, sympy.Or(_W < 5, _W > 8)), lambda h, w: h > 3 and (w < 5 or w > 8)),
    "larger": (sympy.Max(_H, _W) >= 7, lambda h, w: max(h, w) >= 7),
    "none": (sympy.Not(sympy.And(_H > 3, _W > 3), evaluate=False), lambda h, w: not (h > 3 and w > 3)),
}


@pytest.mark.parametrize("name", _CONDITIONS)
def test_conditions_are_those_of_python(name: str) -> None:
    condition, wanted = _CONDITIONS[name]
    sizes = {axis: ir.val(axis, ir.DataType.INT64, [1]) for axis in "hw"}
    branch = SizeBranch("m.py:1", condition, {"h": ("x", 0), "w": ("x", 1)})
    tape = ir.tape.Tape()
    found = holds([branch])(tape, {("x", 0): sizes["h"], ("x", 1): sizes["w"]})
    found.name = "found"
    found.type, found.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([])
    for number, value in enumerate([*tape.initializers, *(out for node in tape.nodes for out in node.outputs)]):
        value.name = value.name if value is found else f"v{number}"
    graph = ir.Graph(
        list(sizes.values()),
        [found],
        nodes=tape.nodes,
        initializers=tape.initializers,
        opset_imports={"": 20},
        name="g",
    )
    run = ReferenceEvaluator(ir.to_proto(ir.Model(graph, ir_version=10)))
    for h in range(1, 14):
        for w in range(1, 14):
            (got,) = run.run(None, {"h": np.array([h]), "w": np.array([w])})
            assert bool(got) == wanted(h, w), (name, h, w)


def test_an_unknown_function_of_sizes_is_refused() -> None:
    branch = SizeBranch("m.py:7", sympy.sin(_H) > 0, {"h": ("x", 0)})
    with pytest.raises(OnnxsmithError) as caught:
        holds([branch])(ir.tape.Tape(), {("x", 0): ir.val("h", ir.DataType.INT64, [1])})
    assert caught.value.problem.where == "m.py:7"


def test_what_one_side_only_passes_on_is_copied() -> None:
    head = '<ir_version: 10, opset_import: ["": 20]>\n'
    port = "g (float[n] x) => (float[n] y, float[n] z, float[1] w) <float[1] w = {2.0}>"
    one = from_text(head + port + " { y = Relu(x) z = Neg(y) }")
    two = from_text(head + port + " { y = Relu(x) z = Relu(x) }")

    def condition(tape: ir.tape.Tape, inputs: dict[str, ir.Value]) -> ir.Value:
        total = tape.op("ReduceSum", [inputs["x"]], {"keepdims": 0})
        return tape.op("Greater", [total, tape.initializer(ir.tensor(np.float32(0)), name="zero")])

    run = ReferenceEvaluator(ir.to_proto(either(condition, one, two)))
    for x in (np.float32([1, 2, -1]), np.float32([1, 2, -9])):
        y, z, w = run.run(None, {"x": x})
        assert w == [2]
        relu = np.maximum(x, 0)
        assert np.array_equal(y, relu)
        assert np.array_equal(z, -relu if x.sum() > 0 else relu)
