"""fuse/reciprocal-div: one over a root, however it is written."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/reciprocal-div"


def graph(end: str, inverse: str = "Reciprocal(r)", root: str = "Sqrt(v)", dtype: str = "float") -> str:
    text = "g (float[N,4] x, float[N,1] w) => (float[N,4] y) <float one = {1}, float[1,1,1] raised = {1}> {"
    return f"{text} v = Abs(w)\n r = {root}\n i = {inverse}\n {end} }}".replace("float", dtype)


@pytest.mark.parametrize("end", ["y = Mul(x, i)", "y = Mul(i, x)"])
@pytest.mark.parametrize("inverse", ["Reciprocal(r)", "Div(one, r)"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_rewritten(end: str, inverse: str, dtype: str) -> None:
    assert_rewritten(RULE, "Abs Sqrt Div", graph(end, inverse, dtype=dtype))


def test_the_root_may_be_read_by_others() -> None:
    assert_rewritten(RULE, "Abs Sqrt Div Add", graph("m = Mul(x, i)\n y = Add(m, r)"))


@refuses(RULE, 1)
def test_two_products() -> None:
    assert_refused(RULE, "used elsewhere", graph("m = Mul(x, i)\n n = Neg(x)\n o = Mul(n, i)\n y = Max(m, o)"))


ALONE = {
    "one over what is no root": graph("y = Mul(x, i)", root="Exp(v)"),
    "another number": graph("y = Mul(x, i)", "Div(v, r)"),
    "a one that raises the rank": graph(
        "m = Mul(x, i)\n y = ReduceSum<keepdims = 0>(m, first)", "Div(raised, r)"
    ).replace("float one", "int64[1] first = {0}, float one"),
    "a quotient": graph("y = Div(x, i)"),
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
