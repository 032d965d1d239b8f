"""algebra/constant-chain: factors with factors, summands with summands."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "algebra/constant-chain"
NUMBERS = "float a = {4}, float b = {0.5}, float[3] row = {1, 2, 3}, float[2,1] column = {5, 6}"


def chain(first: str, second: str, dtype: str = "float") -> str:
    numbers = NUMBERS.replace("float", dtype)
    return f"g ({dtype}[2,3] x) => ({dtype}[2,3] y) <{numbers}> {{ u = {first}\n y = {second} }}"


FACTORS = ["Mul($, a)", "Mul(row, $)", "Div($, b)", "Mul($, column)", "Neg($)"]
SUMMANDS = ["Add($, a)", "Add(row, $)", "Sub($, b)", "Sub($, column)"]


@pytest.mark.parametrize("second", FACTORS)
@pytest.mark.parametrize("first", FACTORS)
def test_factors(first: str, second: str) -> None:
    text = chain(first.replace("$", "x"), second.replace("$", "u"))
    if first == second == "Neg($)":
        assert_rewritten(RULE, "Tanh", text.replace("y = Neg(u)", "v = Neg(u)\n y = Tanh(v)"))
    else:
        assert_rewritten(RULE, "Mul", text)


@pytest.mark.parametrize("second", SUMMANDS)
@pytest.mark.parametrize("first", SUMMANDS)
def test_summands(first: str, second: str) -> None:
    assert_rewritten(RULE, "Add", chain(first.replace("$", "x"), second.replace("$", "u")))


@pytest.mark.parametrize("before", ["Sigmoid(x)", "Clip(x, b, a)", "Cast<to = 1>(k)"])
def test_numbers_that_are_not_so_large(before: str) -> None:
    text = f"""g (float[2,3] x, int8[2,3] k) => (float[2,3] y) <{NUMBERS}> {{
        s = {before}\n u = Mul(s, a)\n y = Mul(u, b) }}"""
    assert_rewritten(RULE, f"{before.split('(')[0].split('<')[0]} Mul", text)


def test_double() -> None:
    assert_rewritten(RULE, "Mul", chain("Mul(x, a)", "Div(u, b)", "double"))


def test_a_rank_that_rises() -> None:
    text = f"""g (float[2,3] x) => (float[1,2,3] y) <{NUMBERS}, float[1,1,1] up = {{7}}> {{
        u = Mul(x, up)\n y = Mul(u, a) }}"""
    assert_rewritten(RULE, "Mul", text)


REFUSED = {
    "1: another reader": (
        "used elsewhere",
        chain("Mul(x, a)", "Mul(u, row)\n z = Neg(u)").replace("y)", "y, float[2,3] z)", 1),
    ),
    "1: an output": ("used elsewhere", chain("Mul(x, a)", "Mul(u, row)").replace("y)", "y, float[2,3] u)", 1)),
    "2: overflow": (
        "out of the range",
        chain("Mul(x, many)", "Mul(u, big)\n z = Tanh(y)").replace(
            "float a", "float many = {512}, float big = {1e38}, float a"
        ),
    ),
    "4: infinity that would become a number": (
        "overflows where the final result does not",
        chain("Mul(x, many)", "Div(u, many)").replace("float a", "float many = {512}, float a"),
    ),
    "4: infinity in some columns": (
        "overflows where the final result does not",
        chain("Mul(x, row)", "Mul(u, less)").replace("float a", "float[3] less = {2, 2, 0.5}, float a"),
    ),
    "4: summands that overflow": (
        "overflows where the final result does not",
        chain("Add(x, far)", "Sub(u, near)").replace("float a", "float far = {2e35}, float near = {1e35}, float a"),
    ),
    "2: underflow": (
        "out of the range",
        chain("Mul(x, b)", "Mul(u, small)").replace("float a", "float small = {1e-38}, float a"),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


@refuses(RULE, 5)
def test_more_room() -> None:
    ones = ", ".join(["1.5"] * 40)
    text = f"""g (float[40,40] x) => (float[40,40] y) <float[40] r = {{{ones}}}, float[40,1] c = {{{ones}}}> {{
        u = Mul(x, r)\n y = Mul(u, c) }}"""
    assert_refused(RULE, "more memory", text)


LEFT_ALONE = {
    "a factor and a summand": chain("Mul(x, a)", "Add(u, b)"),
    "a summand of zeros that widens": """g (float[1] x) => (float[2] y) <float[2] o = {0, 0}, float a = {3}> {
        u = Add(o, x)\n y = Mul(u, a) }""",
    "a constant divided": chain("Div(a, x)", "Mul(u, b)\n z = Tanh(y)"),
    "a constant that is lessened": chain("Sub(a, x)", "Add(u, b)"),
    "a constant that a caller may replace": chain("Mul(x, a)", "Mul(u, b)").replace("x)", "x, float a)", 1),
    "integers": "g (int64[N] x) => (int64[N] y) <int64 a = {2}, int64 b = {3}> { u = Mul(x, a)\n y = Mul(u, b) }",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])


@refuses(RULE, 3)
def test_what_cancels_or_lies_far_off_stays() -> None:
    reason = "the intermediate result loses digits"
    body = "{ c = Add(x, a)\n y = Sub(c, a) }"
    assert_refused(RULE, reason, f"g (float[2] x) => (float[2] y) <float a = {{1e20}}> {body}")
    body = "{ c = Mul(x, a)\n y = Mul(c, b) }"
    assert_refused(RULE, reason, f"g (float[2] x) => (float[2] y) <float a = {{1e30}}, float b = {{1e-30}}> {body}")


def test_the_name_of_a_constant_does_not_grow_with_the_chain() -> None:
    steps = "\n".join(f"v{n} = Add({f'v{n - 1}' if n else 'x'}, w{n})" for n in range(40))
    weights = ", ".join(f"float[4] w{n} = {{1, {n}, 3, 4}}" for n in range(40))
    text = f"g (float[n, 4] x) => (float[n, 4] y) <{weights}> {{ {steps} y = Relu(v39) }}"
    made, _ = simplified(from_text(head(17) + text), only=["algebra/constant-chain"])
    assert [len(name) < 20 for name in made.graph.initializers] == [True]
