"""algebra/transpose-chain: two are one, or none."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/transpose-chain"


def two(first: str, second: str) -> str:
    """`b` is `x`, transposed twice; an empty text stands for no `perm`."""
    before, after = (f"<{attribute}>" if attribute else "" for attribute in (first, second))
    return f"a = Transpose{before}(x)\n b = Transpose{after}(a)"


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        ("perm = [2, 0, 1]", "perm = [2, 1, 0]", "perm = [1, 0, 2]"),
        ("perm = [0, 2, 1]", "perm = [1, 0, 2]", "perm = [2, 0, 1]"),
        ("perm = [1, 2, 0]", "perm = [1, 2, 0]", "perm = [2, 0, 1]"),
    ],
)
def test_two_are_one(first: str, second: str, left: str) -> None:
    text = f"g (float[2,3,4] x) => (float[p,q,r] y) {{ {two(first, second)}\n y = Neg(b) }}"
    made = assert_rewritten(RULE, "Transpose Neg", text)
    assert f"perm = {list(made.graph[0].attributes['perm'].as_ints())}" == left


@pytest.mark.parametrize(
    ("first", "second"), [("perm = [2, 0, 1]", "perm = [1, 2, 0]"), ("", ""), ("perm = [2, 1, 0]", "")]
)
def test_two_are_none(first: str, second: str) -> None:
    text = f"g (float[A,B,C] x) => (float[A,B,C] y) {{ {two(first, second)}\n y = Neg(b) }}"
    assert_rewritten(RULE, "Neg", text)


def test_one_that_keeps_every_axis() -> None:
    assert_rewritten(RULE, "Neg", "g (float[A,B] x) => (float[A,B] y) { a = Transpose<perm = [0, 1]>(x)\n y = Neg(a) }")


def test_the_first_stays_where_another_reads_it() -> None:
    text = """g (float[2,3,4] x) => (float[4,2,3] z, float[3,2,4] y) {
        z = Transpose<perm = [2, 0, 1]>(x)\n b = Transpose<perm = [2, 1, 0]>(z)\n y = Neg(b) }"""
    made = assert_rewritten(RULE, "Transpose Transpose Neg", text)
    assert made.graph[1].inputs[0] is made.graph.inputs[0]


@pytest.mark.parametrize("first", ["a = Relu(x)", "a = Transpose<perm = [2, 0, 1]>(x)"])
def test_one_alone_stays(first: str) -> None:
    assert_left_alone(RULE, f"g (float[A,B,C] x) => (float[p,q,r] y) {{ {first}\n y = Neg(a) }}")
