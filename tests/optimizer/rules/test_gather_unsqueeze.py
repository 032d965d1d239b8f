"""algebra/gather-unsqueeze: indices from either end."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/gather-unsqueeze"
CONSTANTS = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {-1}, int64 o = {0}"


@pytest.mark.parametrize("index", [0, 1, 3, -1, -3])
@pytest.mark.parametrize("size", ["4", "K"])
def test_rewritten(index: int, size: str) -> None:
    text = f"""g (float[N,{size},3] x) => (float[A,B,C] y) <{CONSTANTS}, int64 i = {{{index}}}> {{
        a = Gather<axis = 1>(x, i)\n b = Unsqueeze(a, one)\n y = Concat<axis = 1>(b, x) }}"""
    assert_rewritten(RULE, "Slice Concat", text)


def test_axes_from_the_end() -> None:
    text = f"""g (float[N,4] x) => (float[A,B] y) <{CONSTANTS}> {{
        a = Gather<axis = -1>(x, o)\n y = Unsqueeze(a, last) }}"""
    assert_rewritten(RULE, "Slice", text)


def test_parts() -> None:
    text = f"""g (float[2,N] x) => (float[1,N] y, float[1,N] z) <{CONSTANTS}, int64 i = {{1}}> {{
        a = Gather(x, o)\n b = Gather(x, i)\n y = Unsqueeze(a, zero)\n z = Unsqueeze(b, zero) }}"""
    assert_rewritten(RULE, "Split", text)


@refuses(RULE, 1)
def test_another_reader() -> None:
    text = f"""g (float[N,4] x) => (float[N,1] y, float[N] z) <{CONSTANTS}> {{
        a = Gather<axis = 1>(x, o)\n y = Unsqueeze(a, one)\n z = Neg(a) }}"""
    assert_refused(RULE, "used elsewhere", text)


LEFT_ALONE = {
    "another axis": f"""g (float[N,4] x) => (float[A,B] y) <{CONSTANTS}> {{
        a = Gather<axis = 1>(x, o)\n y = Unsqueeze(a, zero) }}""",
    "two axes": f"""g (float[N,4] x) => (float[A,B,C] y) <{CONSTANTS}, int64[2] both = {{0, 1}}> {{
        a = Gather<axis = 1>(x, o)\n y = Unsqueeze(a, both) }}""",
    "an index with an axis": f"""g (float[N,4] x) => (float[A,B,C] y) <{CONSTANTS}> {{
        a = Gather<axis = 1>(x, zero)\n y = Unsqueeze(a, one) }}""",
    "an index from outside": f"""g (float[N,4] x, int64 i) => (float[A,B] y) <{CONSTANTS}> {{
        a = Gather<axis = 1>(x, i)\n y = Unsqueeze(a, one) }}""",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])


AXES_BY_ATTRIBUTE = f"""g (float[N,4] x) => (float[A,B] y) <{CONSTANTS}> {{
    a = Gather<axis = 1>(x, o)\n y = Unsqueeze<axes = [1]>(a) }}"""


def test_axes_by_attribute() -> None:
    assert_rewritten(RULE, "Slice", AXES_BY_ATTRIBUTE, opset=11)


@refuses(RULE, 2)
def test_a_slice_with_its_bounds_as_attributes() -> None:
    said = "opset 9 has no Slice with its bounds as inputs, which came with 10"
    assert_refused(RULE, said, AXES_BY_ATTRIBUTE, opset=9)
