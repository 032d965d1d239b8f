"""algebra/reduce-one: dimensions of 1, and those that may be more."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/reduce-one"
AXES = "int64[1] one = {1}, int64[2] both = {1, -2}"


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"])
@pytest.mark.parametrize("dtype", ["float", "double", "int32"])
def test_kept(op: str, dtype: str) -> None:
    text = f"g ({dtype}[N,1,4] x) => ({dtype}[N,1,4] y) <{AXES}> {{ a = {op}(x, one)\n y = Neg(a) }}"
    assert_rewritten(RULE, "Neg", text, opset=18)


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_dropped(opset: int) -> None:
    how, given = ("", ", both") if opset == 18 else (", axes = [1, -2]", "")
    text = f"g (float[N,1,1,4] x) => (float[N,4] y) <{AXES}> {{ y = ReduceMean<keepdims = 0{how}>(x{given}) }}"
    assert_rewritten(RULE, "Squeeze", text, opset=opset)


def test_all_axes() -> None:
    assert_rewritten(
        RULE,
        "Squeeze Exp",
        """g (float[1,1] x) => (float y) {
        a = ReduceSum<keepdims = 0>(x)\n y = Exp(a) }""",
    )


def test_an_output_that_is_the_input() -> None:
    assert_rewritten(RULE, "Identity", "g (float[N,1] x) => (float[N,1] y) { y = ReduceMean<axes = [1]>(x) }")


LEFT_ALONE = {
    "more than 1": "g (float[N,2] x) => (float[N] y) { y = ReduceMean<axes = [1], keepdims = 0>(x) }",
    "perhaps more than 1": "g (float[N,M] x) => (float[N] y) { y = ReduceMean<axes = [1], keepdims = 0>(x) }",
    "one of two": "g (float[N,1,3] x) => (float[N] y) { y = ReduceMean<axes = [1, 2], keepdims = 0>(x) }",
    "magnitudes": "g (float[N,1] x) => (float[N] y) { y = ReduceL2<axes = [1], keepdims = 0>(x) }",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
