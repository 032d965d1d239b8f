"""Biases of Gemm that onnxruntime's quantiser cannot read, or reads wrongly, are written otherwise first."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.model_preparation import straighten
from onnxsmith.precision.quantisation_process import Arithmetic
from onnxsmith.runtimes.base import Options, get

ROWS, INNER, COLUMNS = 3, 16, 8
FORM = {
    "ranges": {"x": (-4.0, 4.0)},
    "per_channel": True,
    "reduce_range": True,
    "weights": "QInt8",
    "activations": "QUInt8",
    "symmetric": False,
    "operators": ["Gemm", "Add"],
    "more": {},
}


def gemm(shape: tuple[int, ...], *, beta: float = 1.0, turned: int = 0) -> ir.Model:
    weight = (COLUMNS, INNER) if turned else (INNER, COLUMNS)
    model = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[{ROWS},{INNER}] x, float{list(weight)} w, float{list(shape) if shape else ""} c)
        => (float[{ROWS},{COLUMNS}] y) {{ y = Gemm <beta = {beta}, transB = {turned}> (x, w, c) }}"""
    )
    draw = np.random.default_rng(0)
    for value, size in zip(list(model.graph.inputs)[1:], (weight, shape), strict=True):
        value.const_value = ir.tensor(np.asarray(draw.standard_normal(size), np.float32), name=value.name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)
    next(iter(model.graph)).name = "layer"
    return model


def run(model: ir.Model) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(1).standard_normal((ROWS, INNER)).astype(np.float32)
    with get("onnxruntime").prepare(model) as session:
        return np.asarray(session.run({"x": x})["y"])


SHAPES = [(), (1,), (1, 1), (1, COLUMNS), (COLUMNS,), (ROWS, 1), (ROWS, COLUMNS)]


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("beta", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_model_stays_the_same(shape: tuple[int, ...], beta: float, turned: int) -> None:
    model = gemm(shape, beta=beta, turned=turned)
    before = run(model)
    straighten(model)
    np.testing.assert_allclose(run(model), before, rtol=1e-5, atol=1e-6)
    node = next(iter(model.graph))
    assert len(node.inputs) == 2 or node.inputs[2].const_value.shape.numpy() == (COLUMNS,)
    assert "beta" not in node.attributes or node.attributes["beta"].as_float() == 1
    assert [value.name for value in model.graph.outputs] == ["y"]
    assert all(value.uses() for value in model.graph.initializers.values())


@pytest.mark.parametrize("beta", [1.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_quantiser_takes_it(shape: tuple[int, ...], beta: float) -> None:
    model = gemm(shape, beta=beta)
    before = run(model)
    straighten(model)
    ranges = FORM["ranges"] | {value.name: (-16.0, 16.0) for node in model.graph for value in node.outputs}
    ranges |= dict.fromkeys(model.graph.initializers, (-16.0, 16.0))
    with Arithmetic(model) as arithmetic:
        found = run(cloned(arithmetic.quantised("static", (), **{**FORM, "ranges": ranges})))
    assert np.abs(found - before).max() < 0.3


def test_a_bias_that_is_computed_or_replaceable_stays() -> None:
    model = gemm((1, COLUMNS))
    bias = model.graph.initializers["c"]
    model.graph.inputs.append(bias)
    straighten(model)
    assert next(iter(model.graph)).inputs[2] is bias


def conv(bias: float) -> ir.Model:
    """Two convolutions, of which the first has a bias of this size."""
    model = from_text(
        '<ir_version: 10, opset_import: ["": 18]> g (float[n,16,12,12] x, float[32,16,3,3] w, float[32] c, '
        "float[8,32,3,3] v, float[8] d) => (float[n,8,8,8] y) { [first] h = Conv(x, w, c) [second] y = Conv(h, v, d) }"
    )
    draw = np.random.default_rng(0)
    for value in list(model.graph.inputs)[1:]:
        size = tuple(int(dim) for dim in value.shape or ())
        scale = bias if value.name == "c" else 0.003 if value.name == "w" else 0.1
        value.const_value = ir.tensor((draw.standard_normal(size) * scale).astype(np.float32), name=value.name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)
    return model


@pytest.mark.parametrize(("bias", "kept"), [(1.0, False), (1e6, True)])
def test_a_bias_that_leaves_no_room_for_the_products_stays(bias: float, kept: bool) -> None:
    draw = np.random.default_rng(1)
    data = [{"x": draw.standard_normal((1, 16, 12, 12)).astype(np.float32) * 0.01} for _ in range(8)]
    result = onnxsmith.quantize(conv(bias), to="int8", data=data, budget=2.0, write_unsure=True, measure_time=False)
    part = result.report.part(Quantisation)
    assert [layer.name for layer in part.layers if "32 bits" in layer.kept] == (["first"] if kept else [])
    assert result.model is not None
    outputs = []
    for level in ("all", "disable"):
        with get("onnxruntime").prepare(result.model, Options(optimization=level)) as session:
            outputs.append(np.asarray(session.run(data[0])["y"]))
    assert np.abs(outputs[0] - outputs[1]).max() <= 0.05 * np.abs(outputs[1]).max()
