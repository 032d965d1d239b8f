"""The error of a quantiser is what quantising random values gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.rounding_terms import is_constant, own_noise

HEAD = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> g (float[64,64] x) => (y) '
RNG = np.random.default_rng(0)


def noise(body: str, scale: float | None = None) -> float:
    """The noise of the first node with an operator of quantisation, with `scale` as the root mean square of x."""
    model = from_text(HEAD + body)
    node = next(one for one in model.graph if "quantize" in one.op_type.lower() or "Integer" in one.op_type)
    return own_noise(node, {} if scale is None else {"x": scale})


def measured(step: float, scale: float) -> float:
    """The root mean square of the error of rounding normal values to a step, relative to their scale."""
    values = RNG.standard_normal(100_000) * scale
    return float(np.sqrt(np.mean((np.round(values / step) * step - values) ** 2)) / scale)


@pytest.mark.parametrize(("step", "scale"), [(0.1, 1.0), (0.02, 1.0), (0.1, 3.0)])
def test_a_known_step_and_a_known_scale(step: float, scale: float) -> None:
    body = f"<float s = {{{step}}}, uint8 z = {{128}}> {{ y = QuantizeLinear(x, s, z) }}"
    assert noise(body, scale) == pytest.approx(measured(step, scale), rel=0.02)


def test_the_widest_step_counts_whatever_its_sign() -> None:
    body = "<float[3] s = {0.01, -0.2, 0.1}, int8[3] z = {0, 0, 0}> { y = QuantizeLinear(x, s, z) }"
    assert noise(body, 1.0) == pytest.approx(measured(0.2, 1.0), rel=0.02)


@pytest.mark.parametrize(("dtype", "bits"), [("uint8", 8), ("int16", 16)])
@pytest.mark.parametrize("step", ["constant", "computed"])
def test_without_a_step_or_a_scale_the_bits_decide(dtype: str, bits: int, step: str) -> None:
    read = "t" if step == "computed" else "s"
    body = f"<float s = {{0.1}}, {dtype} z = {{0}}> {{ t = Identity(s) y = QuantizeLinear(x, {read}, z) }}"
    model = from_text(HEAD + body)
    node = next(one for one in model.graph if one.op_type == "QuantizeLinear")
    node.outputs[0].dtype = ir.DataType.from_numpy(np.dtype(dtype))
    expected = 8 / (2**bits - 1) / np.sqrt(12)
    assert own_noise(node, {"x": 1.0} if step == "computed" else {}) == pytest.approx(expected)
    node.outputs[0].dtype = None
    assert own_noise(node, {}) == pytest.approx(8 / 255 / np.sqrt(12))


@pytest.mark.parametrize("body", ["{ y, s, z = DynamicQuantizeLinear(x) }"])
def test_eight_bits_of_its_own_range(body: str) -> None:
    assert noise(body) == pytest.approx(8 / 255 / np.sqrt(12))


def test_a_product_of_integers_has_three_quantised_tensors() -> None:
    body = "<uint8[64,64] w = {}> { y = com.microsoft.DynamicQuantizeMatMul(x, w, x) }".replace(
        "uint8[64,64] w = {}", "float w = {1}"
    )
    assert noise(body) == pytest.approx(np.sqrt(3) * 8 / 255 / np.sqrt(12))


def weights(zero: int, width: float) -> np.ndarray[Any, Any]:
    return np.clip(np.round(RNG.standard_normal((64, 64)) * width) + zero, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(("zero", "width"), [(128, 30.0), (100, 10.0)])
@pytest.mark.parametrize("gathered", [False, True])
def test_a_stored_weight_has_the_error_of_one_level(zero: int, width: float, gathered: bool) -> None:
    held, read = weights(zero, width), "v" if gathered else "w"
    body = (
        f"<uint8[2,2] w = {{0,0,0,0}}, float s = {{0.5}}, uint8 z = {{{zero}}}, int64[1] i = {{0}}> "
        f"{{ v = {'Gather(w, i)' if gathered else 'Identity(x)'} y = DequantizeLinear({read}, s, z) }}"
    )
    model = from_text(HEAD + body)
    model.graph.initializers["w"].const_value = ir.tensor(held)
    node = next(one for one in model.graph if one.op_type == "DequantizeLinear")
    assert own_noise(node, {}) == pytest.approx(measured(1 / width, 1.0), rel=0.03)


def test_what_has_no_error_of_its_own() -> None:
    model = from_text(HEAD + "<float s = {0.5}> { a = QuantizeLinear(x, s) b = DequantizeLinear(a, s) y = Relu(b) }")
    quantize, dequantize, relu = model.graph
    assert own_noise(quantize, {}) > 0
    assert own_noise(dequantize, {}) == 0  # its QuantizeLinear was counted
    assert own_noise(relu, {"b": 1.0}) == 0


def test_a_weight_of_one_element_or_of_zeros_has_none() -> None:
    head = "<uint8[2] w = {7, 7}, uint8[1] one = {9}, float s = {0.5}, uint8 z = {7}> "
    assert noise(head + "{ y = DequantizeLinear(w, s, z) }") == 0
    assert noise(head + "{ y = DequantizeLinear(one, s) }") == 0
    assert noise(head + "{ t = Identity(s) y = DequantizeLinear(w, t) }") == 0


def test_constants() -> None:
    head = "<uint8[2] w = {7, 7}, float s = {0.5}> "
    model = from_text(
        HEAD + head + "{ a = Constant<value_float = 1.0>() b = DequantizeLinear(w, s) c = Relu(x) "
        "d = QuantizeLinear(x, s) e = DequantizeLinear(d, s) y = Add(a, b) }"
    )
    made = {node.outputs[0].name: node.outputs[0] for node in model.graph}
    assert [name for name in "abcdey" if is_constant(made[name])] == ["a", "b"]
    assert is_constant(model.graph.initializers["w"])
    assert not is_constant(model.graph.inputs[0])
