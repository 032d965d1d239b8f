"""algebra/slice-noop: slices that take everything, and those that may not."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/slice-noop"


def cut(starts: str, ends: str, axes: str = "0, 1", steps: str = "1, 1", after: str = "y = Neg(a)") -> str:
    return f"""g (float[N,4] x) => (float[M,K] y)
    <int64[2] s = {{{starts}}}, int64[2] e = {{{ends}}}, int64[2] ax = {{{axes}}}, int64[2] st = {{{steps}}}> {{
        a = Slice(x, s, e, ax, st)\n {after} }}"""


@pytest.mark.parametrize("ends", ["2147483647, 4", "9223372036854775807, 100"])
def test_rewritten(ends: str) -> None:
    assert_rewritten(RULE, "Neg", cut("0, 0", ends))


def test_an_end_that_is_the_dimension() -> None:
    text = """g (float[N,4] x) => (float[N,4] y) <int64[1] o = {0}> {
        n = Shape<start = 0, end = 1>(x)\n a = Slice(x, o, n, o)\n y = Neg(a) }"""
    assert_rewritten(RULE, "Neg", text)


ALONE = {
    "a fixed end of a dynamic dimension": cut("0, 0", "1000, 4"),
    "a start": cut("1, 0", "2147483647, 4"),
    "the last one left out": cut("0, 0", "-1, 4"),
    "steps": cut("0, 0", "2147483647, 4", steps="2, 1"),
    "an end before the dimension's": cut("0, 0", "2147483647, 3"),
    "another dimension's end": cut("0, 0", "4, 2147483647"),
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])


def test_an_output_that_is_the_input() -> None:
    text = cut("0, 0", "2147483647, 4").replace("a = Slice", "y = Slice").replace("y = Neg(a)", "")
    assert_rewritten(RULE, "Identity", text)
