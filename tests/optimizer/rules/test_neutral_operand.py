"""algebra/neutral-operand: what is neutral, and which constants are not."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/neutral-operand"

REWRITTEN = {
    "division": "g (float[N] x) => (float[N] y) <float one = {1}> { a = Div(x, one)\n y = Neg(a) }",
    "subtraction": "g (float[N] x) => (float[N] y) <float[1] o = {0}> { a = Sub(x, o)\n y = Neg(a) }",
    "power": "g (float[N] x) => (float[N] y) <int64 one = {1}> { a = Pow(x, one)\n y = Neg(a) }",
    "integers": "g (int32[N] x) => (int32[N] y) <int32 one = {1}> { a = Mul(x, one)\n y = Neg(a) }",
    "a scalar": "g (float x) => (float y) <float one = {1}> { a = Mul(x, one)\n y = Neg(a) }",
    "a mask of ones": """g (float[N,T] x) => (float[N,T] y) {
        s = Shape(x)\n o = ConstantOfShape<value = float[1] {1}>(s)\n a = Mul(o, x)\n y = Neg(a) }""",
    "a comparison that always holds": """g (float[N] x) => (float[N] y) <int64 z = {0}, int64 i = {1}> {
        s = Shape(x)\n l = Squeeze(s)\n r = Range(z, l, i)\n t = GreaterOrEqual(r, z)\n f = Cast<to = 1>(t)
        a = Mul(x, f)\n y = Neg(a) }""",
    "an input that is made here": "g (float[N] x) => (float[N] y) <float o = {0}> { a = Neg(x)\n y = Add(o, a) }",
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, "Neg", REWRITTEN[case])


REFUSED = {
    "1: a higher rank": (
        "could change", "g (float[N] x) => (float[1,N] y) <float[1,1] one = {1}> { a = Mul(x, one)\n y = Neg(a) }",
    ),
    "1: a dimension that may be 1": (
        "could change", "g (float[N] x) => (float[M] y) <float[3] one = {1, 1, 1}> { a = Mul(x, one)\n y = Neg(a) }",
    ),
    "1: a dimension that is 1": (
        "could change", "g (float[1] x) => (float[2] y) <float[2] o = {0, 0}> { a = Add(o, x)\n y = Neg(a) }",
    ),
    "1: a size of another input": (
        "could change",
        """g (float[N] x, float[M] z) => (float y) <int64 o = {0}> {
        s = Shape(z)\n m = ConstantOfShape(s)\n a = Add(x, m)\n b = Mul(a, z)\n y = ReduceSum(b) }""",
    ),
}  # fmt: skip


def test_an_output_that_is_an_input() -> None:
    assert_rewritten(RULE, "Identity", "g (float[N] x) => (float[N] y) <float one = {1}> { y = Mul(x, one) }")


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


@pytest.mark.parametrize(("operator", "number"), [("And", 1), ("Or", 0)])
def test_logic(operator: str, number: int) -> None:
    text = f"g (bool[N] x) => (bool[N] y) <bool w = {{{number}}}> {{ a = {operator}(w, x)\n y = Not(a) }}"
    assert_rewritten(RULE, "Not", text)


def test_logic_with_the_other_number() -> None:
    assert_left_alone(RULE, "g (bool[N] x) => (bool[N] y) <bool w = {0}> { a = And(w, x)\n y = Not(a) }")


def test_the_second_of_two_that_are_neutral() -> None:
    text = """g (float[N,T] x) => (float[N,T] y) <float z = {0}> {
        s = Shape(x)\n o = ConstantOfShape(s)\n a = Add(o, z)\n b = Mul(a, x)\n y = Neg(b) }"""
    assert_rewritten(RULE, "Shape ConstantOfShape Mul Neg", text)


ALONE = {
    "one minus x": "g (float[N] x) => (float[N] y) <float o = {0}> { a = Sub(o, x)\n y = Neg(a) }",
    "one over x": "g (float[N] x) => (float[N] y) <float one = {1}> { a = Div(one, x)\n y = Neg(a) }",
    "nearly one": "g (float[N] x) => (float[N] y) <float one = {1.000001}> { a = Mul(x, one)\n y = Neg(a) }",
    "not all": "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Mul(x, w)\n y = Neg(a) }",
    "a default": "g (float[N] x, float w) => (float[N] y) <float w = {1}> { a = Mul(x, w)\n y = Neg(a) }",
    "nothing": """g (float[1] x) => (float[M] y) <float[0] w = {}> {
        a = Mul(x, w)\n b = Neg(a)\n y = Concat<axis = 0>(x, b)
    }""",
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
