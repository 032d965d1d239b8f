"""algebra/concat-single."""

from __future__ import annotations

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/concat-single"


def test_an_output_that_is_the_input() -> None:
    assert_rewritten(RULE, "Identity", "g (float[N] x) => (float[N] y) { y = Concat<axis = 0>(x) }")


def test_twice_the_same_is_two() -> None:
    assert_left_alone(RULE, "g (float[N] x) => (float[M] y) { y = Concat<axis = 0>(x, x) }")
