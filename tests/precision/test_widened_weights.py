"""Weights that are stored in 16 bits behind a Cast are quantised like float32 weights."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.precision.model_preparation import narrow_again, widen


def model(dtype: str, *, between: str = "") -> ir.Model:
    nodes = {"": "V = Cast <to = 1> (v)", "Transpose": "t = Transpose (v) V = Cast <to = 1> (t)"}[between]
    made = from_text(
        f"""<ir_version: 10, opset_import: ["": 17]> g (float[n,96] x, {dtype}[96,96] v) => (float[n,96] y)
        {{ {nodes} y = MatMul (x, V) }}"""
    )
    weight = made.graph.inputs.pop()
    array = np.random.default_rng(0).standard_normal((96, 96)) / 10
    weight.const_value = ir.tensor(array.astype(ir.DataType[dtype.upper()].numpy()), name="v")
    made.graph.register_initializer(weight)
    return made


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_weight_is_widened_to_the_same_values(dtype: str) -> None:
    made = model(dtype)
    weight = made.graph.initializers["v"].const_value
    assert weight is not None
    widen(made)
    (name, value), *others = made.graph.initializers.items()
    assert (name, value.dtype, others) == ("V", ir.DataType.FLOAT, [])
    assert value.const_value is not None
    np.testing.assert_array_equal(value.const_value.numpy(), weight.numpy().astype(np.float32))
    assert walk.histogram(made) == {"MatMul": 1}


def test_a_graph_output_and_other_dtypes_stay() -> None:
    text = """<ir_version: 10, opset_import: ["": 17]> g (float[2] x) => (float[2] y, float[2] z)
        <float16[2] v = {1, 2}, int8[2] i = {1, 2}> { y = Cast <to = 1> (v) w = Cast <to = 1> (i) z = Add (x, w) }"""
    made = from_text(text)
    widen(made)
    assert walk.histogram(made) == {"Cast": 2, "Add": 1}


@pytest.mark.parametrize("between", ["", "Transpose"])
def test_the_layer_is_quantised(between: str) -> None:
    result = onnxsmith.quantize(model("float16", between=between), to="int8-dynamic", budget="5%", measure_time=False)
    assert [(layer.op, layer.kept) for layer in result.report.part(Quantisation).layers] == [("MatMul", "")]
    assert result.model is not None
    assert all(one.dtype != ir.DataType.FLOAT or one.size <= 96 for one in walk.initializer_tensors(result.model))


def test_a_weight_that_stays_is_stored_narrow_again() -> None:
    given = model("float16")
    made = model("float16")
    widen(made)
    narrow_again(made, given)
    assert walk.histogram(made) == {"Cast": 1, "MatMul": 1}
    (value,) = made.graph.initializers.values()
    assert (value.name, value.dtype) == ("V_float16", ir.DataType.FLOAT16)
    assert [node.outputs[0].name for node in made.graph] == ["V", "y"]
    widen(made)
    weight = made.graph.initializers["V"]
    weight.const_value = ir.tensor(np.full((96, 96), 0.1, np.float32), name="V")
    narrow_again(made, given)
    assert walk.histogram(made) == {"MatMul": 1}
