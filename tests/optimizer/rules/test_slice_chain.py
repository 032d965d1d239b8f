"""algebra/slice-chain: ranges of different axes, and of one axis."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/slice-chain"
END = 2**63 - 1


def slices(*cuts: tuple[int, int, int, int], dims: str = "N,8,6", rest: str = "") -> str:
    """Slices in a row, each (start, end, axis, step)."""
    names = [f"int64[1] {name}{n} = {{{cut[k]}}}" for n, cut in enumerate(cuts) for k, name in enumerate("seat")]
    body = [f"v{n + 1} = Slice(v{n}, s{n}, e{n}, a{n}, t{n})" for n in range(len(cuts))]
    return f"""g (float[{dims}] v0) => (float[P,Q,R] y) <{", ".join(names)}> {{
        {chr(10).join(body)}\n {rest or f"y = Relu(v{len(cuts)})"} }}"""


REWRITTEN = {
    "two axes": ((0, 3, 1, 1), (2, END, 2, 1)),
    "two axes in steps": ((0, END, 1, 2), (-1, -END, -1, -1)),
    "three axes": ((0, 3, 1, 1), (2, END, 2, 1), (0, 1, 0, 1)),
    "one axis": ((1, 7, 1, 1), (2, 4, 1, 1)),
    "one axis, open": ((1, END, 1, 1), (2, END, 1, 1)),
    "one axis, longer than what is left": ((1, 4, 1, 1), (1, 9, 1, 1)),
    "one axis, from the end of a known size": ((-6, -1, 1, 1), (-3, END, 1, 1)),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, "Slice Relu", slices(*REWRITTEN[case]))


def test_nothing_left() -> None:
    text = slices((1, 3, 1, 1), (4, 6, 1, 1), rest="y = ReduceSum<keepdims = 0>(v2)").replace("[P,Q,R]", "")
    assert_rewritten(RULE, "Slice ReduceSum", text)


def test_open_on_an_axis_of_unknown_size() -> None:
    text = slices((1, END, 0, 1), (2, END, 0, 1), rest="y = ReduceSum<keepdims = 0>(v2)").replace("[P,Q,R]", "")
    assert_rewritten(RULE, "Slice ReduceSum", text)


def test_two_readers() -> None:
    names = "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] end = {100}"
    text = f"""g (float[N,8,6] x) => (float[N,4,3] y) <{names}> {{
        a = Slice(x, zero, end, one, two)\n b = Slice(a, zero, end, two, two)\n c = Slice(a, one, end, two, two)
        y = Sub(b, c) }}"""
    assert_rewritten(RULE, "Slice Slice Sub", text)


def test_parts_of_a_slice_are_a_split() -> None:
    names = ", ".join(f"int64[1] n{n} = {{{n}}}" for n in range(7))
    text = f"""g (float[N,8,6] x) => (float[N,4,2] y) <{names}> {{
        a = Slice(x, n0, n4, n1)\n b = Slice(a, n0, n2, n2)\n c = Slice(a, n2, n4, n2)\n d = Slice(a, n4, n6, n2)
        e = Sub(b, c)\n y = Mul(e, d) }}"""
    assert_left_alone(RULE, text)
    assert_rewritten("algebra/slices-split", "Slice Split Sub Mul", text)


REFUSED = {
    "1: one axis in steps": ("requires the size", slices((0, END, 1, 2), (1, 3, 1, 1))),
    "1: from the end of an unknown size": ("requires the size", slices((-3, END, 0, 1), (1, 2, 0, 1))),
    "2: another reader": (
        "other nodes also read",
        slices((0, 3, 1, 1), (2, 5, 2, 1), rest="m = Neg(v1)\n z = Relu(v2)\n y = Relu(m)").replace(
            "y)", "y, float[I,J,K] z)", 1
        ),
    ),
    "2: an output": (
        ("other nodes also read"),
        slices((0, 3, 1, 1), (2, 5, 2, 1)).replace("y)", "y, float[I,J,K] v1)", 1),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


def test_bounds_from_outside() -> None:
    text = slices((0, 3, 1, 1), (2, 5, 2, 1)).replace("v0)", "v0, int64[1] e1)", 1)
    assert_left_alone(RULE, text)


def test_attributes() -> None:
    text = """g (float[N,8,6] x) => (float[N,3,4] y) {
        a = Slice<starts = [0], ends = [3], axes = [1]>(x)\n y = Slice<starts = [2], ends = [6], axes = [2]>(a) }"""
    assert_left_alone(RULE, text, opset=9)
