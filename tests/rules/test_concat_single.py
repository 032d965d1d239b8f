"""algebra/concat-single."""

from __future__ import annotations

from tests.rewrites import assert_left_alone, assert_refused

RULE = "algebra/concat-single"


def test_an_output_needs_a_value_of_its_own() -> None:
    assert_refused(RULE, "value of its own", "g (float[N] x) => (float[N] y) { y = Concat<axis = 0>(x) }")


def test_twice_the_same_is_two() -> None:
    assert_left_alone(RULE, "g (float[N] x) => (float[M] y) { y = Concat<axis = 0>(x, x) }")
