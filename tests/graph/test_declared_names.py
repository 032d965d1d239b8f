"""Dimensions with generated names get the names that the model declares."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.declared_names import _Known
from onnxsmith.graph.shapes.symbolic_inference import inferred


def rewritten(dim: str, *equal: tuple[str, str]) -> str | int:
    """The text of a dimension after these pairs were noted as equal. Names with a prime's letter `g` are generated."""
    known = _Known(lambda name: name.startswith("g"))
    for one, other in equal:
        known.equate(one, other)
    new = known.solved()
    return dim if new is None else new(dim)


@pytest.mark.parametrize(
    ("dim", "equal", "expected"),
    [
        ("g0", [("g0", "n")], "n"),
        ("g0", [("8*g0", "8*n")], "n"),
        ("g0", [("g0 + 3", "n + 3")], "n"),
        ("g0", [("8*g0*batch*width", "8*batch*height*width")], "height"),
        ("g0", [("4*g0*(past + n)", "4*heads*(past + n)")], "heads"),
        ("g1", [("g0", "g1"), ("g1", "n")], "n"),
        ("g1 + g0", [("g0", "g1"), ("g1", "n")], "2*n"),
        ("m", [("m", "n")], "m"),
        ("2*(c//2)", [("a*b*c", "a*b*2*floor(c/2)")], "c"),
        ("2*h*(c//2) + 1", [("2*(c//2)", "c")], "c*h + 1"),
        ("Max(0, 2*(c//2))", [("2*(c//2)", "c")], "c"),
        ("Broadcast(g0, 2*m)", [("g0", "n"), ("2*m", "k")], "Broadcast(k, n)"),
        ("g0", [("g0", "4")], "g0"),
        ("g0*n", [("4*g0", "3*n")], "g0*n"),
        ("rnn/out dim", [("rnn/out dim", "batch")], "batch"),
        ("batch", [("rnn/out dim", "batch")], "batch"),
        ("g0 +", [("g0", "n")], "n +"),
    ],
)
def test_rewritten(dim: str, equal: list[tuple[str, str]], expected: str) -> None:
    assert rewritten(dim, *equal) == expected


def test_a_reshape_names_a_size_in_all_graphs_that_read_it() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]>
    g (float[batch,height,8] x, bool c) => (float[batch,height,8] y) <int64[2] minus = {-1, 8}> {
        s = Shape(x)
        flat = Reshape(x, minus)
        back = Reshape(flat, s)
        y = If (c) <then_branch = t () => (float[batch,height,8] a) { a = Relu(back) },
                    else_branch = e () => (float[batch,height,8] b) { b = Neg(back) }>
    }"""
    model, trouble = inferred(from_text(text))
    assert trouble is None
    back = next(node for node in model.graph if node.outputs[0].name == "back")
    assert str(back.outputs[0].shape) == "[batch,height,8]"


def test_a_transformer_is_inferred_without_sympy() -> None:
    code = """
import sys
from onnxsmith.base import deferred_imports
deferred_imports.begin()
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
text = '<ir_version: 10, opset_import: ["": 20]> g (float[b,t,8] x) => (float[b,t,8] y) <int64[4] s = {0, 0, 2, 4}> '
model, trouble = inferred(from_text(text + '{ h = Reshape(x, s) r = Shape(x) f = Reshape(h, r) y = Add(f, x) }'))
assert trouble is None and "sympy.core" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
