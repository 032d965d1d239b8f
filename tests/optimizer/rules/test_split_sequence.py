"""algebra/split-sequence: sizes as one number, as a list, by themselves; opsets; what is read in other ways."""

from __future__ import annotations

import pytest

from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/split-sequence"
READ = "a = SequenceAt(s, i)\n b = SequenceAt(s, j)\n y = Mul(a, b)"


def graph(
    sizes: str, read: str = READ, axis: int = 1, x: str = "N,4", places: str = "0, 1", made: str = "(x, n)"
) -> str:
    i, j = places.split(", ")
    return f"""g (float[{x}] x) => (float[N,M] y) <{sizes}, int64 i = {{{i}}}, int64 j = {{{j}}}> {{
        s = SplitToSequence<axis = {axis}>{made}\n {read} }}"""


REWRITTEN = {
    "one size": (graph("int64 n = {2}"), "Split Mul"),
    "the last one smaller": (graph("int64 n = {3}", places="0, 0"), "Split Mul"),
    "a list": (graph("int64[2] n = {2, 2}"), "Split Mul"),
    "another axis": (graph("int64 n = {2}", axis=-2, x="4,M"), "Split Mul"),
    "places from the end": (graph("int64 n = {1}", places="-1, -4"), "Split Mul"),
    "no sizes": (graph("int64 n = {1}", made="(x)"), "Split Mul"),
}


@pytest.mark.parametrize("case", REWRITTEN)
@pytest.mark.parametrize("opset", [11, 13, 20])
def test_rewritten(case: str, opset: int) -> None:
    text, left = REWRITTEN[case]
    assert_rewritten(RULE, left, text, opset)


@refuses(RULE, 4)
def test_an_element_that_is_an_output() -> None:
    text = """g (float[N,4] x) => (float[N,2] y, float[N,2] z) <int64 n = {2}, int64 i = {0}, int64 j = {1}> {
        s = SplitToSequence<axis = 1>(x, n)\n y = SequenceAt(s, i)\n a = SequenceAt(s, j)\n z = Relu(a) }"""
    assert_rewritten(RULE, "Split Relu", text)
    twice = text.replace("a = SequenceAt(s, j)\n z = Relu(a)", "a = Neg(x)\n z = SequenceAt(s, i)")
    assert_refused(RULE, "two graph outputs", twice)


def test_in_a_branch() -> None:
    text = """g (bool c, float[N,4] x) => (float[N,2] y) {
        y = If (c) <then_branch = t () => (float[N,2] p) {
            n = Constant<value = int64 {2}>()\n i = Constant<value = int64 {1}>()
            s = SplitToSequence<axis = 1>(x, n)\n a = SequenceAt(s, i)\n p = Relu(a) },
        else_branch = e () => (float[N,2] q) {
            n2 = Constant<value = int64[2] {2, 2}>()\n u, v = Split<axis = 1>(x, n2)\n q = Neg(u) }> }"""
    result = assert_rewritten(RULE, "If", text)
    branch = result.graph[0].attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch if node.op_type != "Constant"] == ["Split", "Relu"]


REFUSED = {
    "1: the length of the sequence": (
        "not a SequenceAt",
        graph("int64 n = {2}", "a = SequenceAt(s, i)\n l = SequenceLength(s)\n f = Cast<to = 1>(l)\n y = Mul(a, f)"),
    ),
    "1: a place that is computed": (
        "not a SequenceAt",
        graph("int64 n = {2}", "k = ArgMax<axis = 0, keepdims = 0>(v)\n a = SequenceAt(s, k)\n y = Relu(a)").replace(
            "x) =>", "x, float[2] v) =>"
        ),
    ),
    "2: a dynamic size": ("the size of the axis", graph("int64 n = {2}", x="N,M")),
    "3: an axis that is lost": (
        "have no split axis",
        graph("int64 n = {2}", "a = SequenceAt(s, i)\n b = SequenceAt(s, j)\n c = Mul(a, b)\n y = Unsqueeze(c, o)")
        .replace("(x, n)", "<keepdims = 0>(x)")
        .replace("<axis = 1><keepdims = 0>", "<axis = 1, keepdims = 0>")
        .replace("int64 n = {2}", "int64[1] o = {0}"),
    ),
    "1: an output": (
        "as a whole",
        graph("int64 n = {2}").replace("M] y)", "M] y, seq(float[N,2]) s)"),
    ),
    "2: sizes from outside": ("not constants", graph("int64 k = {2}").replace("x) =>", "x, int64 n) =>")),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


def test_a_default_that_a_caller_may_replace() -> None:
    text = graph("int64 n = {2}").replace("x) =>", "x, int64 i) =>")
    assert_left_alone(RULE, text)
