"""algebra/clamp-chain: bounds that are left, and the forms of Clip."""

from __future__ import annotations

import pytest

from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/clamp-chain"
NUMBERS = """float a = {-1}, float b = {2}, float c = {6}, float zero = {0}, float[1] one = {1}, float most = {inf},
    float least = {-inf}"""


def chain(first: str, second: str, dtype: str = "float", last: str = "Neg") -> str:
    numbers = NUMBERS.replace("float", dtype)
    return f"g ({dtype}[N,3] x) => ({dtype}[N,3] y) <{numbers}> {{ u = {first}\n v = {second}\n y = {last}(v) }}"


REWRITTEN = {
    "Max, Min": ("Max(x, a)", "Min(u, c)", "Clip", (-1, 6)),
    "Min, Max": ("Min(c, x)", "Max(b, u)", "Clip", (2, 6)),
    "Max, Min below it": ("Max(x, c)", "Min(u, b)", "Clip", (2, 2)),
    "Max of one element": ("Max(x, one)", "Min(u, c)", "Clip", (1, 6)),
    "Clip, Clip": ("Clip(x, a, c)", "Clip(u, zero, b)", "Clip", (0, 2)),
    "Clip, Clip apart": ("Clip(x, a, zero)", "Clip(u, b, c)", "Clip", (2, 2)),
    "Clip, Clip of one side": ("Clip(x, a)", "Clip(u, , c)", "Clip", (-1, 6)),
    "Clip, Clip of the same side": ("Clip(x, a)", "Clip(u, b)", "Clip", (2, None)),
    "Relu, Relu": ("Relu(x)", "Relu(u)", "Relu", None),
    "Relu, Min": ("Relu(x)", "Min(u, c)", "Clip", (0, 6)),
    "Clip, Relu": ("Clip(x, a, c)", "Relu(u)", "Clip", (0, 6)),
    "Relu, Clip below it": ("Relu(x)", "Clip(u, a, c)", "Clip", (0, 6)),
    "Max, Max": ("Max(x, a)", "Max(u, b)", "Clip", (2, float("inf"))),
    "Max, Max of zero": ("Max(x, a)", "Max(u, zero)", "Relu", None),
    "infinities": ("Clip(x, least, c)", "Clip(u, zero, most)", "Clip", (0, 6)),
}


@pytest.mark.parametrize("case", REWRITTEN)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_rewritten(case: str, dtype: str) -> None:
    first, second, op, bounds = REWRITTEN[case]
    result = assert_rewritten(RULE, f"{op} Neg", chain(first, second, dtype))
    constants = [value.const_value for value in result.graph.node(0).inputs[1:] if value is not None]
    found = [array.numpy().item() for array in constants if array is not None]
    assert found == [bound for bound in bounds or () if bound is not None]


def test_attributes() -> None:
    text = "g (float[N,3] x) => (float[N,3] y) { u = Clip<min = -1.0, max = 3.0>(x)\n v = Relu(u)\n y = Neg(v) }"
    result = assert_rewritten(RULE, "Clip Neg", text, opset=10)
    assert result.graph.node(0).attributes["min"].as_float() == 0
    assert result.graph.node(0).attributes["max"].as_float() == 3


def test_attributes_left_out() -> None:
    text = "g (float[N,3] x) => (float[N,3] y) { u = Clip<min = 2.0>(x)\n v = Relu(u)\n y = Neg(v) }"
    result = assert_rewritten(RULE, "Clip Neg", text, opset=10)
    assert "max" not in result.graph.node(0).attributes


REFUSED = {
    "1: another reader": (
        "used elsewhere",
        chain("Max(x, a)", "Min(u, c)\n w = Sub(u, v)").replace("Neg(v)", "Neg(w)"),
    ),
    "1: an output": ("used elsewhere", chain("Max(x, a)", "Min(u, c)").replace("3] y)", "3] y, float[N,3] u)")),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


@refuses(RULE, 2)
def test_double_before_opset_12() -> None:
    assert_refused(RULE, "no Clip for the dtype", chain("Max(x, a)", "Min(u, c)", "double"), opset=11)


LEFT_ALONE = {
    "integers": chain("Max(x, b)", "Min(u, c)", "int64").replace("inf", "9"),
    "bounds that change the shape": chain("Max(x, a)", "Min(u, d)")
    .replace("float a", "float[2,1,1] d = {3, 4}, float a")
    .replace("[N,3] y", "[A,B,C] y"),
    "a bound for each column": chain("Max(x, a)", "Min(u, d)").replace("float a", "float[3] d = {3, 4, 5}, float a"),
    "three values": chain("Max(x, a, b)", "Min(u, c)"),
    "a bound that a caller may replace": chain("Max(x, a)", "Min(u, c)").replace("x)", "x, float c)", 1),
    "bounds out of order": chain("Clip(x, c, a)", "Relu(u)"),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
