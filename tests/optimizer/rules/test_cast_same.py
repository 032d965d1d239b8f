"""algebra/cast-same: a Cast to the dtype that is there."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/cast-same"


@pytest.mark.parametrize(("dtype", "code"), [("float", 1), ("float16", 10), ("int64", 7), ("double", 11)])
def test_rewritten(dtype: str, code: int) -> None:
    assert_rewritten(RULE, "Neg", f"g ({dtype}[N] x) => ({dtype}[N] y) {{ a = Cast<to = {code}>(x)\n y = Neg(a) }}")


def test_as_an_output() -> None:
    assert_rewritten(RULE, "Neg", "g (float[N] x) => (float[N] y) { a = Neg(x)\n y = Cast<to = 1>(a) }")


@pytest.mark.parametrize(("dtype", "code"), [("float", 10), ("float16", 1), ("int64", 6), ("int32", 7)])
def test_another_dtype_stays(dtype: str, code: int) -> None:
    made = {10: "float16", 1: "float", 6: "int32", 7: "int64"}[code]
    assert_left_alone(RULE, f"g ({dtype}[N] x) => ({made}[N] y) {{ a = Neg(x)\n y = Cast<to = {code}>(a) }}")


def test_an_input_given_out_is_passed_on() -> None:
    assert_rewritten(RULE, "Identity", "g (float[N] x) => (float[N] y) { y = Cast<to = 1>(x) }")
