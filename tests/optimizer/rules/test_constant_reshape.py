"""shape/constant-reshape: which computed targets are known, and which cannot be said."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "shape/constant-reshape"

REWRITTEN = {
    "heads": ("Reshape", """g (float[b,t,768] x) => (float[b,t,12,64] y)
        <int64[2] h = {12, 64}, int64[1] z = {0}, int64[1] two = {2}> {
        s = Shape(x)\n p = Slice(s, z, two)\n q = Concat<axis = 0>(p, h)\n y = Reshape(x, q) }"""),
    "heads merged": ("Reshape", """g (float[b,t,12,64] x) => (float[b,t,u] y) <int64[2] i = {0, 1}, int64[1] m = {-1}> {
        s = Shape(x)\n p = Gather(s, i)\n q = Concat<axis = 0>(p, m)\n y = Reshape(x, q) }"""),
    "an unknown number": (
        "Reshape",
        """g (float[b,6] x) => (float[u,3,2] y) <int64[2] k = {3, 2}> { s = Shape<end = 1>(x)
        f = Cast<to = 1>(s)\n n = Cast<to = 7>(f)\n q = Concat<axis = 0>(n, k)\n y = Reshape(x, q) }""",
    ),
    "a product": ("Reshape", """g (float[b,t,8] x) => (float[u,8] y)
        <int64 z = {0}, int64 i = {1}, int64[1] e = {8}, int64[1] a = {0}> {
        s = Shape(x)\n m = Gather(s, z)\n n = Gather(s, i)\n p = Mul(m, n)\n q = Unsqueeze(p, a)
        t = Concat<axis = 0>(q, e)\n y = Reshape(x, t) }"""),
    "a quotient": ("Reshape", """g (float[b,t,8] x) => (float[b,t,2,u] y) <int64[1] two = {2}> {
        s = Shape<start = 2>(x)\n d = Div(s, two)\n n = Shape<start = 0, end = 2>(x)
        q = Concat<axis = 0>(n, two, d)\n y = Reshape(x, q) }"""),
    "allowzero": ("Reshape", """g (float[b,t,8] x) => (float[b,t,2,4] y) <int64[2] k = {2, 4}> {
        s = Shape<end = 2>(x)\n q = Concat<axis = 0>(s, k)\n y = Reshape<allowzero = 1>(x, q) }"""),
    "in a branch": ("If", """g (bool c, float[b,6] x) => (float[b,u,v] y) { y = If(c) <
        then_branch = t () => (float[b,u,v] p) { s = Shape<end = 1>(x)\n k = Constant<value_ints = [2, 3]>()
            q = Concat<axis = 0>(s, k)\n p = Reshape(x, q) },
        else_branch = e () => (float[b,u,v] r) { l = Constant<value_ints = [0, 3, 2]>()\n r = Reshape(x, l) }> }"""),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


REFUSED = {
    "1: two other dimensions": ("0 and -1 in a shape cannot express", """g (float[b,t,8] x) => (float[t,b,8] y)
        <int64[3] i = {1, 0, 2}> { s = Shape(x)\n p = Gather(s, i)\n y = Reshape(x, p) }"""),
    "2: an empty dimension": ("is 0", """g (float[b,0] x) => (float[b,4] y)
        <int64[2] k = {0, 4}, int64[1] i = {1}> { s = Shape<end = 1>(x)\n q = Concat<axis = 0>(s, k)
        r = Reshape<allowzero = 1>(x, q)\n y = ReduceSum<keepdims = 0>(r, i) }"""),
    "1: another input's dimensions": (("0 and -1 in a shape cannot "
    "express"), """g (float[b,t] x, float[c,d] z) => (float[u,v] y) {
        s = Shape(z)\n p = Reshape(x, s)\n y = Neg(p) }"""),
    ("3: a dimension that may be "
    "empty"): ("another dimension may be 0", """g (float[b,t,8] x) => (float[b,u] y) <int64[1] e = {8}> {
        n = Shape<end = 1>(x)\n s = Shape<start = 1, end = 2>(x)\n m = Mul(s, e)\n q = Concat<axis = 0>(n, m)
        y = Reshape(x, q) }"""),
}  # fmt: skip


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


def test_a_target_of_unknown_length() -> None:
    text = """g (float[6] x, bool[2] c) => (float y) <int64[1] i = {0}, int64[2] k = {2, 3}> { n = NonZero(c)
        f = Shape(n)\n g = Gather(f, i)\n h = Expand(k, g)\n r = Reshape(x, h)\n y = ReduceSum<keepdims = 0>(r) }"""
    assert_left_alone(RULE, text)


def test_a_target_that_is_a_default() -> None:
    text = "g (float[2,6] x, int64[2] k) => (float[2,6] y) <int64[2] k = {6, 2}> { y = Reshape(x, k) }"
    assert_left_alone(RULE, text)
