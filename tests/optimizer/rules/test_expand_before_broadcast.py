"""shape/expand-before-broadcast: what may be as narrow as it was."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "shape/expand-before-broadcast"

REWRITTEN = {
    "to the other operand's shape": ("Add", """g (float[N,4] x, float[4] w) => (float[N,4] y) {
        s = Shape(x)\n e = Expand(w, s)\n y = Add(x, e) }"""),
    "of the first operand": ("Sub", """g (float[N,4] x, float[4] w) => (float[N,4] y) {
        s = Shape(x)\n e = Expand(w, s)\n y = Sub(e, x) }"""),
    "a number above one beside an unknown size": ("Add", """g (float[N,4] x, float[M,1] w, float[1,K] z) => (float y) {
        s = Shape<start = 1>(z)\n e = Expand(w, s)\n y = Add(x, e) }"""),
    "in a choice": ("Where", """g (float[N,4] x, bool[1,4] c, float v) => (float[N,4] y) {
        s = Shape(x)\n e = Expand(c, s)\n y = Where(e, x, v) }"""),
    "axes in front": ("Neg Greater", """g (float[N,M] x, float[M] w) => (bool[N,M] y) <int64[1] o = {0}> {
        n = Neg(w)\n u = Unsqueeze(n, o)\n y = Greater(x, u) }"""),
    "a mask of ones": ("And", """g (bool[N,T] x, bool[1,T] m) => (bool[N,T] y) {
        s = Shape(x)\n o = ConstantOfShape<value = bool[1] {1}>(s)\n a = And(o, m)\n y = And(x, a) }"""),
    "operators between": ("Neg Where Abs Mul", """g (float[N,4,T,T] x, bool[M,1,1,K] m) => (float[N,4,T,T] y)
        <float z = {0}, float[1] l = {-9}> {
        k = Neg(x)\n s = Shape<start = 2>(x)\n e = Expand(m, s)\n w = Where(e, z, l)\n b = Abs(w)\n y = Mul(b, k) }"""),
    "several readers": ("Neg Where Add Add Concat", """g (float[N,T,T] x, bool[M,1,K] m) => (float y)
        <float z = {0}, float l = {-9}> {
        s = Shape<start = 1>(x)\n e = Expand(m, s)\n w = Where(e, z, l)\n n = Neg(x)\n a = Add(n, w)
        b = Add(x, w)\n y = Concat<axis = 0>(a, b) }"""),
    "in a branch": ("If", """g (bool c, float[N,4] x, float[4] w) => (float[N,4] y) { y = If(c) <
        then_branch = t () => (float[N,4] p) { s = Shape(x)\n e = Expand(w, s)\n p = Add(x, e) },
        else_branch = f () => (float[N,4] q) { q = Neg(x) }> }"""),
    "other dtypes": ("Max", """g (double[N,4] x, double[4] w) => (double[N,4] y) {
        s = Shape(x)\n e = Expand(w, s)\n y = Max(x, e) }"""),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


def test_what_reads_the_expand_keeps_it() -> None:
    text = """g (float[N,4] x, float[4] w) => (float[N,4] y, float[N,4] e) {
        s = Shape(x)\n e = Expand(w, s)\n y = Add(x, e) }"""
    assert_rewritten(RULE, "Shape Expand Add", text)


REFUSED = {
    "1: what stands between is an output": """g (float[N,T] x, float[1,K] m) => (float[N,T] y, float w) {
        s = Shape(x)\n e = Expand(m, s)\n w = Neg(e)\n y = Add(x, w) }""",
    "1: what stands between is read elsewhere": """g (float[N,T] x, float[1,K] m) => (float[N,T] y, float z) {
        s = Shape(x)\n e = Expand(m, s)\n w = Neg(e)\n y = Add(x, w)\n z = ReduceSum(w) }""",
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, "to which its width matters", REFUSED[case])


ALONE = {
    "another size": """g (float[N,T] x, float[1,1] w, int64[1] k) => (float y) <int64[1] one = {1}> {
        e = Expand(w, k)\n a = Add(x, e)\n y = ReduceSum(a) }""",
    "a size of another input": """g (float[N] x, float[1] w, float[K] z) => (float y) {
        s = Shape(z)\n e = Expand(w, s)\n a = Add(x, e)\n y = ReduceSum(a) }""",
    "more axes": """g (float[T] x, float[T] w) => (float[1,T] y) <int64[1] o = {0}> {
        u = Unsqueeze(w, o)\n y = Add(x, u) }""",
    "both operands": """g (float[T] w) => (float[1,T] y) <int64[1] o = {0}> { u = Unsqueeze(w, o)\n y = Add(u, u) }""",
    "an axis in the middle": """g (float[N,1,M] x, float[K,M] w) => (float[N,K,M] y) <int64[1] o = {1}> {
        u = Unsqueeze(w, o)\n y = Add(x, u) }""",
    "a matrix product": """g (float[N,T,T] x, float[T,3] w) => (float y) { s = Shape<end = 1>(x)
        p = Shape(w)\n t = Concat<axis = 0>(s, p)\n e = Expand(w, t)\n y = MatMul(x, e) }""",
    "a vector between": """g (float[N,T] x, float[1,1] w) => (float[N,T] y) <float[3] v = {1, 2, 3}> {
        s = Shape(x)\n e = Expand(w, s)\n b = Mul(e, v)\n y = Add(x, b) }""",
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
