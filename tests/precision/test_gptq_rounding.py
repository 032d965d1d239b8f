"""Weights rounded with data: the results of a layer are nearer than with each weight rounded to the nearest step."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.damage import relative_error
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.gptq_rounding import as_weight, in_eight_bits, rounded, rows, second_moments
from onnxsmith.precision.weight_storage import store
from onnxsmith.runtimes.base import get

FORMS = {
    "MatMul": ("float[n,5,40] x, float[40,30] w", "y = MatMul(x, w)", (2, 5, 40)),
    "Gemm": ("float[n,40] x, float[40,30] w", "y = Gemm(x, w)", (60, 40)),
    "Gemm, transposed": ("float[n,40] x, float[30,40] w", "y = Gemm<transB = 1>(x, w)", (60, 40)),
    "Conv": ("float[n,8,9,9] x, float[16,8,3,3] w", "y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)",
             (2, 8, 9, 9)),
    "Conv, one axis": ("float[n,40,20] x, float[16,40,3] w", "y = Conv<dilations = [2]>(x, w)", (2, 40, 20)),
}  # fmt: skip


def model_of(form: str) -> tuple[ir.Model, Samples, Samples]:
    """A model, and inputs for calibration and for the test whose neighbours are alike."""
    inputs, nodes, shape = FORMS[form]
    made = from_text(f'<ir_version: 10, opset_import: ["": 18]> g ({inputs}) => (y) {{ {nodes} }}')
    value = made.graph.inputs[1]
    dims = tuple(int(dim) for dim in value.shape or ())
    array = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    value.const_value = ir.tensor(array, name="w")
    made.graph.inputs.remove(value)
    made.graph.initializers["w"] = value
    for node in made.graph:
        node.name = "layer"

    def smooth(seed: int) -> Any:
        found = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        for axis in range(1, len(shape)):
            found = np.cumsum(found, axis=axis) / 3
        return {"x": found.astype(np.float32)}

    def data(*seeds: int) -> Samples:
        return Samples(lambda: iter([Sample(smooth(seed)) for seed in seeds]), "test")

    return inferred(made)[0], data(*range(20)), data(100)


@pytest.mark.parametrize("form", FORMS)
def test_the_result_is_nearer(form: str) -> None:
    model, calibration, test = model_of(form)
    runtime = get("onnxruntime")
    weights = rounded(model, runtime, calibration, ["layer"])
    assert weights["layer"][0].dtype == np.int8
    nearest = store(cloned(model), {"layer"}, by_cast=True, for_kernels=False)
    better = store(cloned(model), {"layer"}, by_cast=True, for_kernels=False, rounded=weights)
    feeds = next(iter(test)).feeds
    found = []
    for one in (model, nearest, better):
        with runtime.prepare(one) as session:
            found.append(session.run(feeds)["y"])
    exact, plain, made = found
    assert 0 < relative_error(exact, made) < 0.6 * relative_error(exact, plain)


@pytest.mark.parametrize("form", ["MatMul", "Gemm, transposed"])
def test_second_moments_are_those_of_the_inputs(form: str) -> None:
    model, calibration, _ = model_of(form)
    x = np.concatenate([np.asarray(one.feeds["x"]).reshape(-1, 40) for one in calibration]).astype(np.float64)
    found = second_moments(model, get("onnxruntime"), calibration, ["layer"])
    np.testing.assert_allclose(found["layer"], x.T @ x, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_back(form: str) -> None:
    node = model_of(form)[0].graph[0]
    weight = node.inputs[1].const_value.numpy()  # type: ignore[union-attr]
    np.testing.assert_array_equal(as_weight(node, rows(node, weight), weight.shape), weight)


def test_without_correlation_weights_are_rounded_to_the_nearest_step() -> None:
    matrix = np.random.default_rng(2).standard_normal((4, 6)).astype(np.float32)
    narrow, scale = in_eight_bits(matrix, np.eye(6))
    np.testing.assert_array_equal(narrow, np.rint(matrix / scale[:, None]))


def test_layers_of_other_kinds_are_left_out() -> None:
    made = from_text(
        """<ir_version: 10, opset_import: ["": 18]> g (float[n,8,6,6] x, float[8,1,3,3] w) => (y) {
            y = Conv<group = 8>(x, w)
        }"""
    )
    value = made.graph.inputs[1]
    value.const_value = ir.tensor(np.ones((8, 1, 3, 3), np.float32), name="w")
    made.graph.inputs.remove(value)
    made.graph.initializers["w"] = value
    made.graph[0].name = "layer"
    data = Samples(lambda: iter([Sample({"x": np.ones((1, 8, 6, 6), np.float32)})]), "test")
    assert rounded(inferred(made)[0], get("onnxruntime"), data, ["layer"]) == {}
