"""Dimensions whose names are no expressions: shapes are inferred all the same, and the names stay."""

from __future__ import annotations

import subprocess
import sys

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


READ_ALIKE = (
    "2*N", "N + M - 1", "-1*(N - 2)//2", "Max(1, N)", "min(N, M)//4", "N//N", "floor(N)", "N//0", "N//(M - M)",
    "N//Max(0)", "ceiling(N)", "Min(2**N, 4)", "1.5*N", "N % 4", "Foo(N)", "N N", "2(N)", "N/", "(N", "é*2", "Max()",
)  # fmt: skip


@pytest.mark.parametrize("text", READ_ALIKE)
def test_texts_that_are_read_without_sympy_are_those_that_onnx_ir_reads(text: str) -> None:
    try:
        ir.SymbolicDim(text).free_symbols()
    except (ValueError, TypeError, AttributeError):
        assert not symbolic_inference.is_expression(text)
    else:
        assert symbolic_inference.is_expression(text)


def test_most_expressions_are_read_without_sympy() -> None:
    code = (
        "import sys; from onnxsmith.base import deferred_imports; deferred_imports.begin()\n"
        "from onnxsmith.graph.shapes.symbolic_inference import is_expression\n"
        "assert all(map(is_expression, ('2*N', 'N*M + 1', '(N - 1)//2 + 1', 'Min(512, N)', 'N')))\n"
        "sys.exit('sympy.core' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
