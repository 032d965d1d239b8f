"""algebra/transpose-region: operators that keep their axes apart, and where a region ends."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "algebra/transpose-region"
CONSTANTS = "float[5] last = {1, 2, 3, 4, 5}, float[3,1,1] first = {1, 2, 3}, float two = {2}, float[1,1,1,1] one = {3}"


def between(body: str, out: str = "[0, 2, 3, 1]", dims: str = "E,F,G,H", more: str = "", head: str = "") -> str:
    """float[A,5,3,4] x with its second axis last, the body from `a` to `b`, and a Transpose of that."""
    return f"""g (float[A,5,3,4] x{head}) => (float[{dims}] y) <{CONSTANTS}{more}> {{
        a = Transpose<perm = [0, 2, 3, 1]>(x)\n {body}\n y = Transpose<perm = {out}>(b) }}"""


BACK = "[0, 3, 1, 2]"
ONE = {
    "a constant along the last axis": ("Mul", "b = Mul(a, last)"),
    "a constant along the first": ("Pow", "b = Pow(a, first)"),
    "one number": ("Add", "b = Add(two, a)"),
    "one number with axes": ("Div", "b = Div(a, one)"),
    "Clip": ("Clip", "b = Clip(a, two, )"),
    "Where": ("Greater Where", "g = Greater(a, last)\n b = Where(g, a, two)"),
    "the value twice": ("Mul", "b = Mul(a, a)"),
    "a detour": ("Relu Sigmoid Mul", "r = Relu(a)\n s = Sigmoid(r)\n b = Mul(r, s)"),
    "Softmax": ("Softmax", "b = Softmax<axis = -1>(a)"),
    "Concat": ("Relu Concat", "r = Relu(a)\n b = Concat<axis = 3>(r, a)"),
    "Split": ("Split Sub", "p, q = Split<axis = 2>(a)\n b = Sub(p, q)"),
    "Pad": ("Pad", "b = Pad(a, pads)"),
    "Slice": ("Slice", "b = Slice(a, starts, ends, axes)"),
    "Slice of the first axes": ("Slice", "b = Slice(a, starts, ends)"),
    "Gather": ("Gather", "b = Gather<axis = 3>(a, axes)"),
    "ReduceMax": ("ReduceMax", "b = ReduceMax<axes = [-1], keepdims = 1>(a)"),
    "ReduceSum": ("ReduceSum", "b = ReduceSum<keepdims = 1>(a, axes)"),
}


@pytest.mark.parametrize("case", ONE)
def test_no_transpose_is_left(case: str) -> None:
    ops, body = ONE[case]
    more = """, int64[8] pads = {0, 1, 0, 2, 0, 0, 3, 0}, int64[2] starts = {0, 1}, int64[2] ends = {1, 4},
        int64[2] axes = {3, 1}"""
    assert_rewritten(RULE, ops, between(body, BACK, more=more))


def test_an_axis_that_goes() -> None:
    text = between(
        "s = Mul(a, last)\n b = ReduceSum<keepdims = 0>(s, end)", "[0, 2, 1]", "E,F,G", ", int64[1] end = {-1}"
    )
    result = assert_rewritten(RULE, "Transpose Mul ReduceSum", text)
    assert list(result.graph.node(0).attributes["perm"].as_ints()) == [0, 3, 2, 1]


def test_an_axis_that_goes_by_attribute() -> None:
    text = between("r = Exp(a)\n b = ReduceMean<keepdims = 0, axes = [3]>(r)", "[0, 2, 1]", "E,F,G").replace(
        "perm = [0, 2, 3, 1]", "perm = [0, 3, 2, 1]"
    )
    assert_rewritten(RULE, "Transpose Exp ReduceMean", text)


def test_axes_that_come_and_go() -> None:
    text = between("u = Unsqueeze(a, end)\n s = Mul(u, two)\n b = Squeeze(s, end)", BACK, more=", int64[1] end = {-1}")
    assert_rewritten(RULE, "Unsqueeze Mul Squeeze", text)


def test_matrix_and_normalisation() -> None:
    text = """g (float[A,B,4] x) => (float[E,F,G] y)
    <float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[4] c = {1,2,3,4}> {
        a = Transpose<perm = [1, 0, 2]>(x)\n n = LayerNormalization(a, c, c)\n m = MatMul(n, w)\n s = Add(m, c)
        y = Transpose<perm = [1, 0, 2]>(s) }"""
    assert_rewritten(RULE, "LayerNormalization MatMul Add", text)


def test_a_value_in_both_orders() -> None:
    """The sum of a residual network whose layers want the channels last, and its shortcuts first."""
    text = """g (float[A,5,3,4] x) => (float[E,F,G,H] y) <float[5] c = {1, 2, 3, 4, 5}> {
        a = Transpose<perm = [0, 2, 3, 1]>(x)\n n = LayerNormalization(a, c)\n t = Transpose<perm = [0, 3, 1, 2]>(n)
        s = Add(x, t)\n u = Transpose<perm = [0, 2, 3, 1]>(s)\n y = LayerNormalization(u, c) }"""
    assert_rewritten(RULE, "Transpose LayerNormalization Add LayerNormalization", text)


def test_half() -> None:
    text = between("b = Mul(a, half)", BACK, more=", float16[5] half = {1, 2, 3, 4, 5}").replace("float[A", "float16[A")
    assert_rewritten(RULE, "Mul", text.replace("float[E", "float16[E"))


def test_in_a_branch() -> None:
    text = f"""g (float[A,5,3,4] x, bool f) => (float[E,F,G,H] y) <{CONSTANTS}> {{
        y = If (f) <then_branch = t () => (float[E,F,G,H] p) {{
            a = Transpose<perm = [0, 2, 3, 1]>(x)\n b = Mul(a, last)\n p = Transpose<perm = {BACK}>(b) }},
                    else_branch = e () => (float[A,5,3,4] q) {{ q = Neg(x) }}> }}"""
    result = assert_rewritten(RULE, "If", text)
    then = result.graph.node(0).attributes["then_branch"].as_graph()
    assert "Transpose" not in [node.op_type for node in then]


@refuses(RULE, 1)
def test_as_many_would_be_needed() -> None:
    text = between("b = Add(a, z)", BACK, head=", float[A,3,4,5] z, float[A,3,4,5] v").replace(
        "Add(a, z)", "Sum(a, z, v)"
    )
    assert_refused(RULE, "as many", text)


@refuses(RULE, 2)
def test_the_other_order_comes_too_late() -> None:
    text = f"""g (float[A,3,4,5] x, float[A,5,3,4] z) => (float[E,F,G,H] y, float[I,J,K,L] w) {{
        t = Transpose<perm = {BACK}>(x)\n s = Add(z, t)\n u = Transpose<perm = [0, 2, 3, 1]>(s)\n y = Relu(u)
        n = Mul(y, y)\n v = Transpose<perm = [0, 2, 3, 1]>(z)\n w = Sub(v, n) }}"""
    assert_refused(RULE, "too late", text)


LEFT_ALONE = {
    "another reader": between("b = Mul(a, last)\n z = Abs(b)", BACK).replace("H] y)", "H] y, float[I,J,K,L] z)"),
    "an output": between("b = Mul(a, last)", BACK).replace("H] y)", "H] y, float[I,J,K,L] b)"),
    "other values with less axes": between("b = Mul(a, z)", BACK, head=", float[5] z"),
    "an operator that mixes axes": between("b = Reshape(a, s)", "[1, 0]", "E,F", ", int64[2] s = {4, -1}"),
    "a row": between("r = Relu(a)\n b = Neg(r)", BACK),
    "a matrix along an axis that moves": between("b = MatMul(a, w)", BACK, more=", float[5,1] w = {1, 2, 3, 4, 5}"),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])


@refuses(RULE, 3)
def test_a_large_constant_that_others_read_needs_room() -> None:
    numbers = ", ".join("1.5" for _ in range(400))
    text = f"""g (float[A,400,2] x, float[400] v) => (float[E,F,G] y, float[400] z) <float[400] c = {{{numbers}}}> {{
        a = Transpose<perm = [0, 2, 1]>(x)\n b = Mul(a, c)\n y = Transpose<perm = [0, 2, 1]>(b)\n z = Mul(v, c) }}"""
    assert_rewritten(RULE, "Mul Mul", text)
    small = text.replace("400", "40").replace(", 1.5" * 360, "")
    for given, asked, moves in ((text, 0.0, False), (text, 0.5, False), (text, 1.5, True), (small, 0.0, True)):
        kept, part = simplified(from_text(head(17) + given), max_growth=asked)
        assert ("Transpose" not in [node.op_type for node in kept.graph]) == moves
        refused = [entry.why_not for entry in part.refused if entry.rule == RULE]
        assert any("1,600 bytes, more than --max-growth leaves" in why for why in refused) != moves


def test_constants_that_are_stored_twice_share_the_room() -> None:
    numbers = ", ".join("1.5" for _ in range(400))
    text = f"""g (float[A,400,2] x, float[A,400,2] w, float[400] v) => (float[E,F,G] y, float[E,F,G] u, float[400] z)
        <float[400] c = {{{numbers}}}, float[400] d = {{{numbers.replace("1.5", "2.5")}}}> {{
        a = Transpose<perm = [0, 2, 1]>(x)\n b = Mul(a, c)\n y = Transpose<perm = [0, 2, 1]>(b)\n p = Mul(v, c)
        e = Transpose<perm = [0, 2, 1]>(w)\n f = Mul(e, d)\n u = Transpose<perm = [0, 2, 1]>(f)
        t = Tanh(p)\n z = Mul(t, d) }}"""
    for asked, left in ((1.2, 0), (0.7, 2), (0.1, 4)):
        kept, _ = simplified(from_text(head(17) + text), max_growth=asked)
        assert [node.op_type for node in kept.graph].count("Transpose") == left
