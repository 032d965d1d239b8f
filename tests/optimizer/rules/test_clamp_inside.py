"""algebra/clamp-inside: bounds that are never reached."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/clamp-inside"
NUMBERS = "float a = {-1}, float zero = {0}, float c = {6}, float most = {inf}, float least = {-inf}"


def of(source: str, bound: str, last: str = "Neg") -> str:
    return f"g (float[N,3] x) => (float[N,3] y) <{NUMBERS}> {{ u = {source}\n v = {bound}\n y = {last}(v) }}"


@pytest.mark.parametrize("op", ["Sigmoid", "Softmax", "Exp", "Abs", "Sqrt", "HardSigmoid", "Softplus"])
@pytest.mark.parametrize("bound", ["Relu(u)", "Max(u, zero)", "Max(a, u)", "Clip(u, a, most)"])
def test_not_negative(op: str, bound: str) -> None:
    assert_rewritten(RULE, f"{op} Neg", of(f"{op}(x)", bound))


def test_through_what_moves_elements() -> None:
    assert_rewritten(RULE, "Exp Transpose Neg", of("Exp(x)\n t = Transpose<perm = [1, 0]>(u)", "Relu(t)"))


@pytest.mark.parametrize("bound", ["Relu(u)", "Clip(u, a, c)", "Min(u, c)", "Clip(u)"])
def test_narrower_before(bound: str) -> None:
    text = of("Clip(x, zero, c)", bound).replace("Neg(v)", "Sub(u, v)")
    assert_rewritten(RULE, "Clip Sub", text)


def test_no_bounds() -> None:
    text = f"g (float[N] x) => (float[N] y) <{NUMBERS}> {{ v = Clip(x, least, most)\n y = Neg(v) }}"
    assert_rewritten(RULE, "Neg", text)


def test_an_output_that_is_the_input() -> None:
    text = f"g (float[N] x) => (float[N] y) <{NUMBERS}> {{ y = Clip(x, least, most) }}"
    assert_rewritten(RULE, "Identity", text)


LEFT_ALONE = {
    "what may be negative": of("Tanh(x)", "Relu(u)"),
    "an upper bound": of("Exp(x)", "Min(u, c)"),
    "an upper bound that is left out": of("Exp(x)", "Clip(u, zero)"),
    "no bounds by default": "g (float[N] x) => (float[N] y) { v = Clip(x)\n y = Neg(v) }",
    "a higher lower bound": of("Clip(x, a, c)", "Relu(u)\n w = Sub(u, v)").replace("Neg(v)", "Neg(w)"),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])


def test_integers() -> None:
    text = "g (int32[N] x) => (int32[N] y) <int32 zero = {0}> { u = Abs(x)\n v = Max(u, zero)\n y = Neg(v) }"
    assert_left_alone(RULE, text)  # the least of them has no magnitude
