"""Shapes of some values are inferred from the declared ones, and are the same as those of the whole model."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text, to_text
from onnxsmith.graph.shapes.needed_shapes import needed
from onnxsmith.graph.shapes.symbolic_inference import inferred

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
HALF = HEAD + (
    "g (float[n,8] x) => (float[n,4] y) <float[4,8] w = {" + ",".join(["1"] * 32) + "}, float[n,8] a> "
    "{ a = Relu(x) t = Transpose(w) y = MatMul(a, t) }"
)
BARE = HEAD + (
    "g (float[b,t,8] x) => (float[b,t,8] y) <int64[4] s = {0, 0, 2, 4}> "
    "{ h = Reshape(x, s) r = Shape(x) f = Reshape(h, r) y = Add(f, x) }"
)
CHAIN = HEAD + (
    "g (float[n,8] x) => (float[n,8] y) <int64[1] e = {8}, float[n,8] a> "
    "{ a = Neg(x) s = Shape<end = 1>(a) t = Concat<axis = 0>(s, e) y = Reshape(x, t) }"
)


def values(model: ir.Model) -> list[ir.Value]:
    return [value for node in model.graph for value in (*node.inputs, *node.outputs) if value is not None]


@pytest.mark.parametrize("text", [HALF, BARE, CHAIN])
def test_needed_shapes_are_those_of_the_whole_model(text: str) -> None:
    model = from_text(text)
    before = to_text(model)
    whole = {value.name: str(value.shape) for value in values(inferred(model)[0])}
    with needed(model, values(model)) as found:
        assert found
        assert {value.name: str(value.shape) for value in values(model)} == whole
    assert to_text(model) == before


@pytest.mark.parametrize(
    "body",
    [
        "k = NonZero(x) y = Cast<to = 1>(k)",
        (
            "k = If (c) <then_branch = t () => (float[n,8] a) { a = Relu(x) }, else_branch = e () => (float[n,8] b) "
            "{ b = Neg(x) }> y = Relu(k)"
        ),
        "k = other.domain.Unknown(x) y = Relu(k)",
    ],
)
def test_what_needs_the_whole_model_is_left_to_it(body: str) -> None:
    head = '<ir_version: 10, opset_import: ["": 20, "other.domain": 1]> g (float[n,8] x, bool c) => (float[p,q] y) '
    model = from_text(f"{head} {{ {body} }}")
    before = to_text(model)
    with needed(model, [model.graph.node(0).outputs[0]]) as found:
        assert not found
        assert to_text(model) == before


def test_an_error_in_the_block_restores_the_model() -> None:
    model = from_text(HALF)
    before = to_text(model)
    with pytest.raises(KeyError), needed(model, values(model)):
        raise KeyError
    assert to_text(model) == before


def test_a_new_name_is_no_name_of_an_input() -> None:
    model = from_text(HEAD + "g (float[_d0,8] x) => (float[p,q] y) { k = NonZero(x) y = Cast<to = 1>(k) }")
    with needed(model, [model.graph.node(0).outputs[0]]) as found:
        assert not found
