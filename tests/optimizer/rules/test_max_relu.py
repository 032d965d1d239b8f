"""algebra/max-relu: zeros of floating point."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/max-relu"


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("body", ["Max(x, zero)", "Max(zero, x)", "Max(x, one)"])
def test_rewritten(dtype: str, body: str) -> None:
    zeros = f"{dtype} zero = {{0}}, {dtype}[1,1] one = {{0}}"
    assert_rewritten(RULE, "Relu", f"g ({dtype}[N,3] x) => ({dtype}[N,3] y) <{zeros}> {{ y = {body} }}")


@refuses(RULE, 1)
def test_integers() -> None:
    assert_refused(RULE, "not known to be", "g (int32[N] x) => (int32[N] y) <int32 zero = {0}> { y = Max(x, zero) }")


LEFT_ALONE = {
    "another number": "g (float[N] x) => (float[N] y) <float one = {1}> { y = Max(x, one) }",
    "a zero that widens": "g (float[N] x) => (float[1,N] y) <float[1,1] zero = {0}> { y = Max(x, zero) }",
    "three": "g (float[N] x) => (float[N] y) <float zero = {0}> { y = Max(x, zero, x) }",
    "the less": "g (float[N] x) => (float[N] y) <float zero = {0}> { y = Min(x, zero) }",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
