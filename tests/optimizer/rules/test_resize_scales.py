"""algebra/resize-scales: whole multiples for every size, and what is none."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/resize-scales"


def sized(body: str, how: str = 'mode = "linear"', x: str = "N,2,H,W", more: str = "") -> str:
    return f"""g (float[{x}] x{more}) => (float[A,B,C,D] y)
    <int64[2] k = {{2, 3}}, int64[1] three = {{3}}, int64[1] two = {{2}}, int64[2] one = {{1, 1}}> {{
        n = Shape<start = 0, end = 2>(x)\n s = Shape<start = 2>(x)\n {body}\n t = Concat<axis = 0>(n, u)
        y = Resize<{how}>(x, , , t) }}"""


@pytest.mark.parametrize(
    "how",
    [
        'mode = "linear"',
        'mode = "cubic"',
        'mode = "nearest", coordinate_transformation_mode = "asymmetric"',
        'mode = "linear", coordinate_transformation_mode = "align_corners"',
    ],
)
def test_rewritten(how: str) -> None:
    result = assert_rewritten(RULE, "Resize", sized("u = Mul(s, k)", how))
    scales = result.graph.node(0).inputs[2]
    assert scales is not None
    assert scales.const_value is not None
    assert scales.const_value.numpy().tolist() == [1, 1, 2, 3]


def test_multiples_of_what_was_scaled() -> None:
    """Sizes of another value that are twice this one's."""
    text = """g (float[N,2,H,W] x) => (float[A,B,C,D] y) <float[4] twice = {1, 1, 2, 2}> {
        b = Resize<mode = "nearest">(x, , twice)\n c = Neg(b)\n s = Shape(c)\n d = Resize<mode = "linear">(x, , , s)
        y = Add(c, d) }"""
    assert_rewritten(RULE, "Resize Neg Resize Add", text)


def test_some_sizes_are_numbers() -> None:
    assert_rewritten(RULE, "Resize", sized("u = Mul(s, k)", x="1,2,4,W"))


REFUSED = {
    "1: half of it": ("whole multiple", sized("u = Div(s, two)")),
    "1: one more": ("whole multiple", sized("u = Add(s, one)")),
    "1: a number": ("whole multiple", sized("u = Concat<axis = 0>(three, three)")),
    "1: another value's": (
        "whole multiple",
        """g (float[N,2,H,W] x, float[N,2,K,L] z) => (float[A,B,C,D] y) {
            s = Shape(z)\n y = Resize<mode = "linear">(x, , , s) }""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


def test_sizes_that_are_numbers() -> None:
    assert_left_alone(RULE, sized("u = Mul(s, k)", x="1,2,3,4"))


def test_a_policy() -> None:
    text = sized("u = Mul(s, k)", 'mode = "linear", keep_aspect_ratio_policy = "not_larger"')
    assert_left_alone(RULE, text, opset=18)
