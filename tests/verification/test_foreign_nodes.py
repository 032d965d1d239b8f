"""What cannot be run or repeated is cut out, and the parts around it are compared."""

from __future__ import annotations

import pytest

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.verification.foreign_nodes import _keyed, _kind_of
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 10, opset_import: ["": 20, "mine": 1]>\n'
AROUND = HEAD + "g (float[N,3] x) => (float[N,3] y) { a = Identity(x)\n b = Neg(a)\n c = mine.Op(b)\n y = Abs(c) }"


def test_a_model_is_simplified_around_an_unknown_operator() -> None:
    result = onnxsmith.simplify(from_text(AROUND))
    assert result.ok
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Neg", "Op", "Abs"]
    assert "only the parts around" in result.report.part(Verification).notes[0]
    assert "1 Op" in result.report.part(Verification).notes[0]


@pytest.mark.parametrize(
    "wrong", ["b = Abs(x)\n c = mine.Op(b)\n y = Abs(c)", "b = Neg(x)\n c = mine.Op(b)\n y = Neg(c)"]
)
def test_a_wrong_part_before_or_after_is_found(wrong: str) -> None:
    other = from_text(f"{HEAD}g (float[N,3] x) => (float[N,3] y) {{ {wrong} }}")
    found = verify_models(from_text(AROUND), other)
    assert found.verified
    assert not found.equal


def test_random_numbers_are_cut_out() -> None:
    text = HEAD + "g (float[N,3] x) => (float[N,3] y) { a = Identity(x)\n r = RandomNormalLike(a)\n y = Add(a, r) }"
    result = onnxsmith.simplify(from_text(text))
    assert result.ok
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["RandomNormalLike", "Add"]
    assert "1 RandomNormalLike" in result.report.part(Verification).notes[0]


def test_results_that_are_outputs_and_operands_that_are_inputs() -> None:
    text = (
        HEAD
        + "g (float[2] x, float[2] z) => (float[2] y, float[2] w) { y = mine.Op(x, z)\n v = Identity(y)\n w = Abs(v) }"
    )
    result = onnxsmith.simplify(from_text(text))
    assert result.ok
    assert result.model is not None
    assert [value.name for value in result.model.graph.outputs] == ["y", "w"]


def test_a_model_that_is_nothing_else_cannot_be_verified() -> None:
    text = HEAD + "g (float[2] x) => (float[2] y) { r = RandomNormal<shape = [2]>()\n y = mine.Op(x, r) }"
    with pytest.raises(onnxsmith.OnnxsmithError):
        verify_models(from_text(text), from_text(text.replace("mine.Op(x, r)", "mine.Other(x, r)")))


OUTSIDE = "only the parts around them were verified"
PARTS = {
    "in a branch": """g (float[3] x, bool c) => (float[3] y) {{ a = {}(x)\n b = If(c) <
        then_branch = t () => (float[3] p) {{ p = mine.Op(a) }}, else_branch = e () => (float[3] q) {{ q = Neg(a) }}>
        y = {}(b) }}""",
    "in a Loop": """g (float[3] x) => (float[3] y) <int64 m = {{3}}, bool c = {{1}}> {{ a = {}(x)
        b = Loop(m, c, x) <body = d (int64 i, bool more, float[3] s) => (bool again, float[3] n) {{
            again = Identity(more)\n n = mine.Op(s, a) }}>
        y = {}(b) }}""",
    "in a function": """g (float[3] x) => (float[3] y) {{ a = {}(x)\n b = own.f(a)\n y = {}(b) }}
        <domain: "own", opset_import: ["": 20, "mine": 1]> f (p) => (q) {{ r = Neg(p)\n q = mine.Op(r) }}""",
}


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize(("before", "after"), [("Abs", "Exp"), ("Neg", "Exp"), ("Abs", "Sin")])
def test_a_foreign_node_inside_something(kind: str, before: str, after: str) -> None:
    head = HEAD.replace('"mine": 1', '"mine": 1, "own": 1')
    reference = from_text(head + PARTS[kind].format("Abs", "Exp"))
    found = verify_models(reference, from_text(head + PARTS[kind].format(before, after)))
    assert found.equal == ((before, after) == ("Abs", "Exp"))
    assert OUTSIDE in found.notes[0]
    assert "in parts" in found.untried[0]


@pytest.mark.parametrize("wrong", ["mine.Op<k = 2>(x, w)", "mine.Op<k = 1>(x, v)"])
def test_what_a_foreign_node_is_given_is_compared(wrong: str) -> None:
    text = (
        HEAD + "g (float[2] x) => (float[2] y) <float[2] w = {{1, 2}}, float[2] v = {{1, 3}}> {{ a = {}\n y = Abs(a) }}"
    )
    same = text.format("mine.Op<k = 1>(x, w)")
    assert verify_models(from_text(same), from_text(same)).equal
    assert verify_models(from_text(same), from_text(text.format(wrong))).differs


def test_a_part_without_a_kernel_anywhere() -> None:
    """Each runtime lacks one of the two operators; onnxruntime runs all but one of them."""
    text = HEAD + "g (double[3] x) => (double[3] y) { a = Neg(x)\n b = mine.Op(a)\n c = Erf(b)\n y = Abs(c) }"
    found = verify_models(from_text(text), from_text(text))
    assert found.equal
    assert OUTSIDE in found.notes[0]


THREE = "g (float[2] x) => (double[2] y) { [a] a = Erf(x)\n [b] b = Cast<to = 11>(a)\n [c] y = Erf(b) }"


@pytest.mark.parametrize(
    ("what", "where", "kind"),
    [
        ("onnxruntime has no kernel for ai.onnx:Erf", "node 'c'", ("", "Erf", "DOUBLE", "DOUBLE")),
        ("onnxruntime has no kernel for Erf", "", ("", "Erf", "FLOAT", "FLOAT")),  # the first
        ("onnxruntime has no kernel for Cast", "node 'c'", None),
        ("onnxruntime has no kernel for Tanh", "", None),
        ("onnxruntime does not know it", "node 'c'", None),
    ],
)
def test_the_node_without_a_kernel_is_found_by_its_operator_and_name(
    what: str, where: str, kind: tuple[str, ...] | None
) -> None:
    model = inferred(from_text(HEAD + THREE))[0]
    assert [node.name for node in model.graph] == ["a", "b", "c"]
    assert _kind_of(Problem("runtime/no-kernel", what, where=where), model) == kind


def test_nodes_are_paired_by_a_name_of_their_own_else_by_their_place() -> None:
    text = "g (float[2] x) => (float[2] y) { [a] a = Abs(x) [b] b = Neg(a) c = Neg(b) [a] d = Neg(c) y = Abs(d) }"
    keyed = _keyed(list(from_text(HEAD + text).graph))
    assert list(keyed) == [("", "Abs", "#1"), ("", "Neg", "b"), ("", "Neg", "#2"), ("", "Neg", "#3"), ("", "Abs", "#2")]


CHANNELS = (
    HEAD
    + """
g (float[1,8,6,6] x, float[1,18,6,6] off) => (%s y)
<float[4] g1 = {1,1,1,1}, float[4] b = {0,0,0,0}, float[4] mu = {0,0,0,0}, float[4] va = {1,1,1,1}> {
    i = Identity(x)
    d = mine.Deform(i, off)
    e = %s
    f = Relu(e)
    y = Identity(f)
}
"""
)


@pytest.mark.parametrize(
    ("output", "reader"),
    [
        ("float[1,4,6,6]", "Abs(d)"),  # the declared shape of the output
        ("float[a,c,h,v]", "BatchNormalization(d, g1, b, mu, va)"),  # the weights of the reader
    ],
)
def test_the_shape_of_a_foreign_result_follows_from_its_readers(output: str, reader: str) -> None:
    model = from_text(CHANNELS % (output, reader))
    result = onnxsmith.simplify(model)
    assert result.ok
    assert "1 Deform" in result.report.part(Verification).notes[0]
