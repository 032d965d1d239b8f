"""algebra/concat-chain: one axis, said in one way or the other."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/concat-chain"
HEAD = "g (float[N,1] x, float[N,2] z) => (float[N,M] y)"


@pytest.mark.parametrize("axes", [(1, 1), (-1, -1), (1, -1), (-1, 1)])
def test_rewritten(axes: tuple[int, int]) -> None:
    text = f"{HEAD} {{ a = Concat<axis = {axes[0]}>(x, z)\n y = Concat<axis = {axes[1]}>(z, a) }}"
    result = assert_rewritten(RULE, "Concat", text)
    assert [value.name for value in result.graph.node(0).inputs if value is not None] == ["z", "x", "z"]


def test_three_and_twice() -> None:
    text = f"""{HEAD} {{
        a = Concat<axis = 1>(x, z)\n b = Concat<axis = 1>(a, x)\n c = Concat<axis = 1>(z, x)
        y = Concat<axis = 1>(b, c, b) }}"""
    result = assert_rewritten(RULE, "Concat", text)
    assert len(result.graph.node(0).inputs) == 8


@refuses(RULE, 1)
def test_another_reader() -> None:
    text = f"""{HEAD} {{
        a = Concat<axis = 1>(x, z)\n b = Concat<axis = 1>(a, x)\n c = Concat<axis = 1>(x, a)\n y = Sub(b, c) }}"""
    assert_refused(RULE, "used elsewhere", text)


@refuses(RULE, 1)
def test_an_output() -> None:
    text = f"{HEAD.replace('M] y', 'M] y, float[N,3] a')} {{ a = Concat<axis = 1>(x, z)\n y = Concat<axis = 1>(a, x) }}"
    assert_refused(RULE, "used elsewhere", text)


@refuses(RULE, 2)
def test_parts_that_would_be_written_several_times() -> None:
    text = f"{HEAD} {{ a = Concat<axis = 1>(x, z, x)\n y = Concat<axis = 1>(a, a, a) }}"
    assert_refused(RULE, "several times", text)


def test_other_axes() -> None:
    text = "g (float[3,2] x) => (float[6,4] y) { a = Concat<axis = 0>(x, x)\n y = Concat<axis = 1>(a, a) }"
    assert_left_alone(RULE, text)


def test_outside_of_the_branch() -> None:
    text = """g (float[4,1] x, bool f) => (float[4,3] y) {
        a = Concat<axis = 1>(x, x)
        y = If(f) <then_branch = t () => (float[4,3] p) { p = Concat<axis = 1>(a, x) },
                   else_branch = e () => (float[4,3] q) { n = Neg(x)\n q = Concat<axis = 1>(x, n, x) }>
    }"""
    assert_left_alone(RULE, text)
