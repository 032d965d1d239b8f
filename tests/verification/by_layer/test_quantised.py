"""Quantised files beside their float originals: rounding to steps is no error, another scale is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.text import from_text

FLOAT = """
<ir_version: 10, opset_import: ["": 21]>
g (float[n,16] x) => (float[n,4] y) {
    h = MatMul(x, w)
    r = Relu(h)
    y = MatMul(r, v)
}
"""
QUANTISED = """
<ir_version: 10, opset_import: ["": 21]>
g (float[n,16] x) => (float[n,4] y) {
    x_q = QuantizeLinear(x, x_scale, zero)
    x_DequantizeLinear_Output = DequantizeLinear(x_q, x_scale, zero)
    w = DequantizeLinear(w_quantized, w_scale, zero)
    h = MatMul(x_DequantizeLinear_Output, w)
    r = Relu(h)
    r_q = QuantizeLinear(r, r_scale, zero)
    r_DequantizeLinear_Output = DequantizeLinear(r_q, r_scale, zero)
    v = DequantizeLinear(v_quantized, v_scale, zero)
    y = MatMul(r_DequantizeLinear_Output, v)
}
"""


def pair(**scales: float) -> tuple[ir.Model, ir.Model, dict[str, np.ndarray]]:
    """A small network, the same in 8 bits, and an input. `scales` are factors that go wrong."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.standard_normal((16, 32)), "v": rng.standard_normal((32, 4))}
    x = rng.standard_normal((64, 16)).astype(np.float32)
    hidden = np.maximum(x @ weights["w"], 0)
    steps = {"x": np.abs(x).max() / 127, "r": hidden.max() / 127}
    plain: dict[str, Any] = {name: value.astype(np.float32) for name, value in weights.items()}
    few: dict[str, Any] = {"zero": np.int8(0)}
    for name, value in weights.items():
        steps[name] = np.abs(value).max() / 127
        few[f"{name}_quantized"] = np.round(value / steps[name]).astype(np.int8)
    few |= {f"{name}_scale": np.float32(step * scales.get(name, 1.0)) for name, step in steps.items()}
    return with_constants(FLOAT, plain), with_constants(QUANTISED, few), {"x": x}


def with_constants(text: str, constants: dict[str, Any]) -> ir.Model:
    """The model of the text, with initializers for the names that nothing computes."""
    typed = {np.dtype(np.float32): "float", np.dtype(np.int8): "int8"}
    arrays = {name: np.asarray(value) for name, value in constants.items()}
    declared = ", ".join(f"{typed[one.dtype]}[{','.join(map(str, one.shape))}] {name}" for name, one in arrays.items())
    model = from_text(text.replace("[n,16] x)", f"[n,16] x, {declared})").replace("[] ", " "))
    for value in list(model.graph.inputs)[1:]:
        value.const_value = ir.tensor(arrays[value.name or ""], name=value.name)
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)
    return model


def looked(plain: ir.Model, few: ir.Model, feeds: dict[str, np.ndarray], **options: Any) -> Layers:
    result = onnxsmith.compare(plain, few, inputs=feeds, generate=False, per_layer=True, **options)
    return result.report.part(Layers)


def test_rounding_to_steps_is_not_called_an_error() -> None:
    plain, few, feeds = pair()
    result = onnxsmith.compare(plain, few, inputs=feeds, generate=False, per_layer=True)
    assert result.report.verdict is not Verdict.DIFFERENT, result.report  # a change of 1% is less than such rounding
    assert result.report.part(Layers).culprits == ()
    assert "of quantisers" in result.report.to_json()


@pytest.mark.parametrize(("wrong", "culprit"), [("r", "r_DequantizeLinear_Output"), ("w", "h"), ("v", "y")])
def test_a_wrong_scale_is_named(wrong: str, culprit: str) -> None:
    plain, few, feeds = pair(**{wrong: 0.3})
    assert looked(plain, few, feeds).culprits[0] == culprit


def test_an_input_is_paired_with_itself_dequantised() -> None:
    plain, few, feeds = pair(x=0.3)
    found = looked(plain, few, feeds)
    assert found.culprits[0] == "x_DequantizeLinear_Output"
    assert found.layer("x_DequantizeLinear_Output").reference == "x"


def test_two_quantised_files_are_held_to_rounding_alone() -> None:
    _, few, feeds = pair()
    _, other, _ = pair(r=0.3)
    assert looked(few, few, feeds).culprits == ()
    assert looked(few, other, feeds).culprits


def test_the_layers_in_which_the_error_grows_are_ranked() -> None:
    plain, few, feeds = pair(r=0.3)
    found = looked(plain, few, feeds)
    assert "r_DequantizeLinear_Output" in found.growing[:2]
    assert "the error grows most at" in "".join(str(block) for block in found.blocks())
    assert looked(plain, plain, feeds).growing == ()


@pytest.mark.parametrize("between", ["Identity", "Flatten"])
def test_a_product_is_allowed_its_own_rounding_alone(between: str) -> None:
    """Both sides quantise, and the last product gets equal inputs to the bit: 0.5% more is its own fault."""
    _, few, feeds = pair()
    _, wrong, _ = pair(v=1.005)
    for one in (few, wrong):
        reader = next(node for node in one.graph if node.outputs[0].name == "y")
        read = reader.inputs[0]
        node = ir.Node("", between, [read], outputs=[ir.Value(name="moved")])
        one.graph.insert_before(reader, node)
        reader.replace_input_with(0, node.outputs[0])
    layers = looked(few, wrong, feeds)
    assert layers.culprits[0] in ("y", "v")
    last = layers.layer("y")
    assert last.allowed < 1e-4
    assert last.own is not None
    assert last.own > 1e-3
