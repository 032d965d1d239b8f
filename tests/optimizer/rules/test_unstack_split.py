"""algebra/unstack-split: the ways in which parts are taken, and stacks that are read otherwise."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/unstack-split"
GATHERS = "q = Gather<axis = {0}>(b, i)\n k = Gather<axis = {0}>(b, j)\n v = Gather<axis = {0}>(b, l)"
SQUEEZES = (
    """s, t, u = Split<axis = {0}>(b, ones)\n q = Squeeze(s, first)\n k = Squeeze(t, first)\n v = Squeeze(u, first)"""
)
END = "m = MatMul(q, v)\n y = Sub(m, k)"


def graph(
    take: str,
    x: str = "N,6,18",
    stacked: str = "0, 6, 3, 1, 6",
    perm: str = "2, 0, 3, 1, 4",
    axis: int = 0,
    end: str = END,
) -> str:
    constants = f"""int64[{stacked.count(",") + 1}] stacked = {{{stacked}}}, int64[1] first = {{{axis}}},
        int64[3] ones = {{1, 1, 1}}, int64 i = {{0}}, int64 j = {{1}}, int64 l = {{2}}"""
    turn = f"b = Transpose<perm = [{perm}]>(a)" if perm else "b = Identity(a)"
    return f"""g (float[{x}] x) => (float[A,B,C,D] y) <{constants}> {{
        a = Reshape(x, stacked)\n {turn}\n {take.format(axis)}\n {end} }}"""


LEFT = "Reshape Transpose Split MatMul Sub"
REWRITTEN = {
    "by Gather": (graph(GATHERS), LEFT),
    "by Split and Squeeze": (graph(SQUEEZES), LEFT),
    "a dynamic length": (
        graph(GATHERS, "N,S,18", "0, -1, 3, 3, 2", end="m = Mul(q, v)\n y = Sub(m, k)"),
        LEFT.replace("MatMul", "Mul"),
    ),
    "another axis": (graph(GATHERS, perm="0, 2, 3, 1, 4", axis=1), LEFT),
    "places from the end": (graph(GATHERS).replace("int64 j = {1}", "int64 j = {-2}"), LEFT),
    "two of three": (graph(GATHERS, end="m = MatMul(q, v)\n y = Relu(m)"), "Reshape Transpose Split MatMul Relu"),
    "no Transpose": (graph(GATHERS, perm="", axis=2, end="m = Mul(q, v)\n y = Sub(m, k)"), "Reshape Split Mul Sub"),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
@pytest.mark.parametrize("opset", [11, 17])
def test_rewritten(case: str, opset: int) -> None:
    text, left = REWRITTEN[case]
    if opset < 13:
        text = text.replace("<axis = 0>(b, ones)", "<axis = 0, split = [1, 1, 1]>(b)")
        text = text.replace("(s, first)", "<axes = [0]>(s)").replace("(t, first)", "<axes = [0]>(t)")
        text = text.replace("(u, first)", "<axes = [0]>(u)").replace("Squeeze<", "Squeeze <")
    assert_rewritten(RULE, left, text, opset)


def test_parts_that_are_outputs() -> None:
    text = graph(GATHERS, end="y = Identity(q)").replace("D] y)", "D] y, float[E,F,G,H] k)")
    assert_rewritten(RULE, "Reshape Transpose Split", text)


@refuses(RULE, 1)
def test_other_readers() -> None:
    text = graph(GATHERS, end="m = MatMul(q, v)\n n = Sub(m, k)\n o = ReduceSum(b)\n y = Add(n, o)")
    assert_refused(RULE, "other ways", text)
    assert_refused(RULE, "other ways", graph(GATHERS).replace("D] y)", "D] y, float[E,F,G,H,I] b)"))


@refuses(RULE, 2)
def test_sizes_that_are_not_known() -> None:
    assert_refused(RULE, "sizes of the axis", graph(GATHERS, "N,6,W", "0, 6, -1, 1, 6"))
    text = f"""g (float[N,18,S,T] x) => (float[A,B,C,D] y)
        <int64[2] n = {{3, 6}}, int64 i = {{0}}, int64 j = {{1}}, int64 l = {{2}}> {{
        d = Shape<end = 1>(x)\n e = Shape<start = 2, end = 3>(x)\n f = Shape<start = 3>(x)
        stacked = Concat<axis = 0>(d, n, f, e)\n a = Reshape(x, stacked)\n b = Transpose<perm = [1, 0, 2, 3, 4]>(a)
        {GATHERS.format(0)}\n m = Mul(q, v)\n y = Sub(m, k) }}"""
    assert_refused(RULE, "more than one dimension differs", text)


ALONE = {
    "one of three": graph(GATHERS, end="m = Relu(q)\n y = Exp(m)"),
    "the last axis": graph(GATHERS, stacked="0, 6, 1, 6, 3", perm="4, 0, 2, 1, 3"),
    "a place that is computed": graph(GATHERS)
    .replace("x) =>", "x, int64 i, int64 j, int64 l) =>")
    .replace("int64 i = {0}, int64 j = {1}, int64 l = {2},", ""),
    "no Reshape": graph(GATHERS, x="N,6,3,1,6").replace("Reshape(x, stacked)", "Relu(x)"),
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
