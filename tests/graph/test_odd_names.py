"""Dimensions whose names are no expressions: shapes are inferred all the same, and the names stay."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from onnxsmith.graph.shapes import symbolic_inference
from onnxsmith.graph.shapes.symbolic_inference import inferred


def model(first: str, second: str) -> ir.Model:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[N,4] x, float[M,4] y) => (float[K,4] z)
        { a = Relu(x) b = Concat<axis=0>(a, x) c = Relu(y) z = Neg(b) }"""
    )
    for value, text in zip(proto.graph.input, (first, second), strict=True):
        value.type.tensor_type.shape.dim[0].dim_param = text
    return ir.serde.deserialize_model(proto)


@pytest.mark.parametrize("text", ["batch size", "50%", "N,M", "max(1, N//", "2*", "[a]", "Shuffled(a, b)", "a;b"])
def test_an_odd_name_stays_a_name(text: str) -> None:
    made, note = inferred(model(text, "M"))
    if any(character.isalpha() for character in text):
        shapes = {value.name: value.shape for node in made.graph for value in node.outputs}
        assert shapes["a"] == ir.Shape([text, 4])
        assert shapes["c"] == ir.Shape(["M", 4])
    assert note is None
    assert not symbolic_inference.is_expression(text)


def test_two_odd_names_of_the_same_letters_stay_two() -> None:
    made, note = inferred(model("batch size", "batch;size"))
    shapes = {value.name: value.shape for node in made.graph for value in node.outputs}
    assert note is None
    assert shapes["a"] == ir.Shape(["batch size", 4])
    assert shapes["c"] == ir.Shape(["batch;size", 4])


def test_expressions_are_left_alone() -> None:
    assert all(map(symbolic_inference.is_expression, ("N", "x.y", "2*N", "floor(N/2)", "max(a, b)", "N + 1")))
