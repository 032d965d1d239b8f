"""How the weights of a quantised graph are stored."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from onnxsmith.exporter.graph.stored_integers import store
from onnxsmith.exporter.translations._quantizing import BITS

SCALES = "float[3] s = {0.5, 1, 2}, int8[3] z = {0, 0, 0}"


def made(text: str, *, bits: str = "", opset: int = 21) -> tuple[ir.Model, ir.Model]:
    """The graph before and after its weights are stored."""
    text = f'<ir_version: 10, opset_import: ["": {opset}]> g {text}'
    before, after = (ir.serde.deserialize_model(onnx.parser.parse_model(text)) for _ in range(2))
    for node in after.graph:
        if bits and node.op_type == "DequantizeLinear":
            node.metadata_props[BITS] = bits
    inferred = ir.passes.common.ShapeInferencePass()(after).model
    store(inferred)
    return before, inferred


def same(before: ir.Model, after: ir.Model, **feeds: np.ndarray) -> None:
    onnx.checker.check_model(ir.serde.serialize_model(after), full_check=True)
    a, b = (ReferenceEvaluator(ir.serde.serialize_model(model)).run(None, feeds) for model in (before, after))
    np.testing.assert_allclose(a[0], b[0], rtol=1e-6)


X = np.random.default_rng(0).normal(size=(2, 2)).astype(np.float32)
LINEAR = f"""(float[2,2] x) => (float[2,3] y) <int8[3,2] q = {{1, -8, 3, 7, 5, 0}}, {SCALES}> {{
    w = DequantizeLinear<axis=0>(q, s, z)  y = Gemm<transB=1>(x, w) }}"""


def test_a_weight_that_is_read_transposed_is_stored_transposed() -> None:
    before, after = made(LINEAR)
    same(before, after, x=X)
    (dequantize, product) = list(after.graph)
    assert product.op_type == "MatMul"
    assert dequantize.attributes["axis"].as_int() == 1
    assert after.graph.initializers["q"].const_value.shape == (2, 3)


@pytest.mark.parametrize(("opset", "dtype"), [(21, ir.DataType.INT4), (20, ir.DataType.INT8)])
def test_four_bits(opset: int, dtype: ir.DataType) -> None:
    _, after = made(LINEAR, bits="4", opset=opset)
    assert after.graph.initializers["q"].dtype == dtype


def test_numbers_beyond_four_bits_keep_eight() -> None:
    _, after = made(LINEAR.replace("-8", "-9"), bits="4")
    assert after.graph.initializers["q"].dtype == ir.DataType.INT8


def test_a_float_weight_that_is_quantised_becomes_integers() -> None:
    text = f"""(float[2,2] x) => (float[2,3] y) <float[3,2] f = {{0.25, -0.75, 1.5, 2.5, 500, -3}}, {SCALES}> {{
        q = QuantizeLinear<axis=0>(f, s, z)  w = DequantizeLinear<axis=0>(q, s, z)
        t = Transpose<perm=[1,0]>(w)  y = MatMul(x, t) }}"""
    before, after = made(text)
    same(before, after, x=X)
    assert [node.op_type for node in after.graph] == ["DequantizeLinear", "MatMul"]
    assert after.graph.initializers["f"].const_value.numpy().tolist() == [[0, 2, 127], [-2, 2, -2]]


def test_a_gemm_with_other_factors_stays() -> None:
    text = LINEAR.replace("transB=1", "transB=1, alpha=0.5")
    before, after = made(text)
    same(before, after, x=X)
    assert [node.op_type for node in after.graph] == ["DequantizeLinear", "Gemm"]


def test_a_weight_with_another_reader_is_not_transposed() -> None:
    text = f"""(float[2,2] x) => (float[2,3] y, float[3,2] w) <int8[3,2] q = {{1, -8, 3, 7, 5, 0}}, {SCALES}> {{
        w = DequantizeLinear<axis=0>(q, s, z)  y = Gemm<transB=1>(x, w) }}"""
    before, after = made(text)
    same(before, after, x=X)
    assert after.graph.initializers["q"].const_value.shape == (3, 2)


def test_scales_that_are_computed_become_products() -> None:
    text = """(int8[2,2] q, float[2] r) => (float[2,2] y) <int8[2] z = {1, -2}> {
        s = Abs(r)  y = DequantizeLinear<axis=0>(q, s, z) }"""
    before, after = made(text)
    same(before, after, q=np.array([[1, 2], [3, -4]], np.int8), r=np.array([-0.5, 2], np.float32))
    (node,) = [node for node in after.graph if node.op_type == "DequantizeLinear"]
    assert "axis" not in node.attributes
