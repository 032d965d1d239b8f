"""algebra/pad-between-views: amounts that move with their axes."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/pad-between-views"
CONSTANTS = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[6] p = {0, 0, 3, 1, 0, 2},
    int64[3] flat = {-1, 2, 5}, float value = {0.5}, float[1,4,1,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}"""


def around(
    before: str, after: str, x: str = "N,4,1,5", pad: str = "Pad(a, p)", y: str = "A,B,C,D", last: str = "Relu"
) -> str:
    return f"""g (float[{x}] x) => (float[{y}] y) <{CONSTANTS}> {{
        a = {before}\n b = {pad}\n c = {after}\n y = {last}(c) }}"""


def test_as_it_was() -> None:
    result = assert_rewritten(RULE, "Pad Relu", around("Squeeze(x, two)", "Unsqueeze(b, two)"))
    amounts = result.graph.node(0).inputs[1]
    assert amounts is not None
    assert amounts.const_value is not None
    assert amounts.const_value.numpy().tolist() == [0, 0, 0, 3, 1, 0, 0, 2]


@pytest.mark.parametrize("mode", ['mode = "edge"', 'mode = "reflect"'])
def test_modes(mode: str) -> None:
    text = around("Squeeze(x, two)", "Unsqueeze(b, two)", pad=f"Pad<{mode}>(a, q)").replace("int64[6] p", "int64[6] q")
    assert_rewritten(RULE, "Pad Relu", text.replace("{0, 0, 3, 1, 0, 2}", "{0, 1, 3, 0, 2, 1}"))


def test_a_value() -> None:
    assert_rewritten(RULE, "Pad Relu", around("Squeeze(x, two)", "Unsqueeze(b, two)", pad="Pad(a, p, value)"))


def test_a_view_is_left() -> None:
    text = around("Squeeze(x, two)", "Unsqueeze(b, zero)")
    result = assert_rewritten(RULE, "Reshape Pad Relu", text)
    assert len(result.graph) == 3


def test_two_pads_of_one_view() -> None:
    text = f"""g (float[N,4,1,5] x) => (float[A,B,C,D] y, float[E,F,G,H] z) <{CONSTANTS}> {{
        a = Squeeze(x, two)\n b = Pad(a, p)\n c = Unsqueeze(b, two)
        d = Pad<mode = "edge">(a, p)\n e = Unsqueeze(d, two)
        y = Relu(c)\n z = Abs(e) }}"""
    result = assert_rewritten(RULE, "Pad Pad Relu Abs", text)
    assert len(result.graph) == 4


def before_a_convolution(pad: str) -> str:
    return f"""g (float[N,4,5] x, float v) => (float[A,B,C,D] y) <{CONSTANTS.replace("3, 1, 0, 2", "3, 0, 0, 2")}> {{
        b = {pad}\n c = Unsqueeze(b, two)\n y = Conv(c, w) }}"""


def test_zeros_before_a_convolution() -> None:
    result = assert_rewritten(RULE, "Reshape Conv", before_a_convolution("Pad(x, p)"))
    assert list(result.graph.node(1).attributes["pads"].as_ints()) == [0, 3, 0, 2]


REFUSED = {
    "1: another reader": (
        "used elsewhere",
        around("Squeeze(x, two)", "Unsqueeze(b, two)\n z = Neg(b)").replace("D] y)", "D] y, float[E,F,G] z)"),
    ),
    "2: a dimension of 1": ("dimension of 1", around("Squeeze(x, two)", "Unsqueeze(b, two)", "1,4,1,5")),
    "2: amounts from outside": (
        "not known",
        around("Squeeze(x, two)", "Unsqueeze(b, two)").replace("x)", "x, int64[6] p)", 1),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


LEFT_ALONE = {
    "other dimensions change": around("Reshape(x, flat)", "Unsqueeze(b, two)"),
    "a view before it only": around("Squeeze(x, two)", "Neg(b)", y="A,B,C"),
    "a view after it only": around("Neg(x)", "Unsqueeze(b, two)", "N,4,5"),
    "another value before a convolution": before_a_convolution("Pad(x, p, value)"),
    "a value from outside before a convolution": before_a_convolution("Pad(x, p, v)"),
    "the edge before a convolution": before_a_convolution('Pad<mode = "edge">(x, p)'),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
