"""shape/known-vector: vectors of sizes."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "shape/known-vector"

REWRITTEN = {
    "as torch expands": ("Shape Concat Expand", """g (float[N,T] x, float[1,8] c) => (float y)
        <int64[1] m = {-1}, int64[2] k = {-1, -1}, int64[1] two = {2}> {
        s = Shape<end = 1>(x)\n t = Concat<axis = 0>(s, m)\n o = ConstantOfShape<value = int64[1] {1}>(two)
        e = Equal(t, k)\n w = Where(e, o, t)\n y = Expand(c, w) }"""),
    "the vector itself": ("Shape Expand", """g (float[N] x, float[1] c) => (float y) <int64[1] m = {-1}> {
        s = Shape(x)\n e = Equal(s, m)\n w = Where(e, m, s)\n y = Expand(c, w) }"""),
    "an output": ("Shape Concat", """g (float[N,T] x) => (int64[2] w)
        <int64[1] m = {-1}, int64[2] k = {-1, -1}, int64[2] o = {1, 1}> {
        s = Shape<end = 1>(x)\n t = Concat<axis = 0>(s, m)\n e = Equal(t, k)\n w = Where(e, o, t) }"""),
    "an output that another output equals": ("Shape Identity", """g (float[N] x) => (int64[1] s, int64[1] w)
        <int64[1] m = {-1}> { s = Shape(x)\n e = Equal(s, m)\n w = Where(e, m, s) }"""),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


def test_as_many_nodes() -> None:
    text = """g (float[N,T] x, float[1] c) => (float y) <int64[2] at = {1, 0}> {
        s = Shape(x)\n w = Gather(s, at)\n y = Expand(c, w) }"""
    assert_left_alone(RULE, text)


@refuses(RULE, 1)
def test_what_others_read_is_not_freed() -> None:
    text = """g (float[N,T] x, float[1,1] c) => (float y, int64[2] t, bool[2] e)
        <int64[1] m = {-1}, int64[2] k = {-1, -1}, int64[2] o = {1, 1}> {
        s = Shape<end = 1>(x)\n t = Concat<axis = 0>(s, m)\n e = Equal(t, k)\n w = Where(e, o, t)
        y = Expand(c, w) }"""
    assert_refused(RULE, "as many nodes", text)


ALONE = {
    "a product": """g (float[N,T] x, float[1] c) => (float y) <int64[1] two = {2}> {
        s = Shape<end = 1>(x)\n w = Mul(s, two)\n y = Expand(c, w) }""",
    "an unknown element": """g (float[N,T] x, float[1,1] c, int64[1] k) => (float y) {
        s = Shape<end = 1>(x)\n w = Concat<axis = 0>(s, k)\n e = Expand(c, w)\n y = ReduceSum(e) }""",
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
