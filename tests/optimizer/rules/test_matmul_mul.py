"""fuse/matmul-mul: factors along the columns, with and without a bias between, and weights that may not be changed."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/matmul-mul"
HEAD = "g (float[N,3,2] x) => (float[N,3,2] y)"
FLAT = "g (float[N,2] x) => (float[N,2] y)"
W = "float[2,2] w = {1, 2, 3, 4}"
B = "float[2] b = {5, 6}"


@pytest.mark.parametrize("constant", ["float c = {0.5}", "float[2] c = {-1, 2}", "float[1,1,2] c = {0, 2}"])
@pytest.mark.parametrize("step", ["Mul(a, c)", "Mul(c, a)", "Div(a, d)", "Neg(a)"])
def test_rewritten(constant: str, step: str) -> None:
    divisor = constant.replace(" c ", " d ").replace("0, ", "4, ")
    text = f"{HEAD} <{W}, {constant}, {divisor}> {{ a = MatMul(x, w)\n y = {step} }}"
    assert_rewritten(RULE, "MatMul", text)


REWRITTEN = {
    "a bias between": (
        "MatMul Add",
        f"{HEAD} <{W}, {B}, float c = {{3}}> {{ a = MatMul(x, w)\n s = Add(b, a)\n y = Mul(s, c) }}",
    ),
    "Gemm": (
        "Gemm",
        f"{FLAT} <{W}, {B}, float[2] c = {{3, 4}}> {{ a = Gemm<alpha = 2.0, beta = 3.0>(x, w, b)\n y = Mul(a, c) }}",
    ),
    "Gemm of transposed weights": (
        "Gemm",
        f"{FLAT} <{W}, float[2] c = {{3, 4}}> {{ a = Gemm<transB = 1>(x, w)\n y = Div(a, c) }}",
    ),
    "Gemm of transposed data": (
        "Gemm",
        f"""g (float[2,N] x) => (float[N,2] y) <{W}, float[2] c = {{3, 4}}> {{
            a = Gemm<transA = 1>(x, w)\n y = Mul(a, c) }}""",
    ),
    "double": (
        "MatMul",
        f"{HEAD} <{W}, float c = {{3}}> {{ a = MatMul(x, w)\n y = Mul(a, c) }}".replace("float", "double"),
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_forms(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


REFUSED = {
    "4: along the rows": (
        "for each channel",
        f"{HEAD} <{W}, float[3,1] c = {{1, 2, 3}}> {{ a = MatMul(x, w)\n y = Mul(a, c) }}",
    ),
    "1: two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, float c = {{3}}> {{ a = MatMul(x, w)\n m = Mul(a, c)\n y = Sub(a, m) }}",
    ),
    "1: the sum has two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, {B}, float c = {{3}}> {{ a = MatMul(x, w)\n s = Add(a, b)\n m = Mul(s, c)\n y = Sub(s, m) }}",
    ),
    "4: a bias along the rows": (
        "the bias is not one number",
        f"""{HEAD} <{W}, float[3,1] b = {{1, 2, 3}}, float c = {{3}}> {{
            a = MatMul(x, w)\n s = Add(a, b)\n y = Mul(s, c) }}""",
    ),
    "3: shared weights": (
        "weights are also used elsewhere",
        f"{HEAD} <{W}, float c = {{3}}> {{ a = MatMul(x, w)\n m = Mul(a, c)\n y = MatMul(m, w) }}",
    ),
    "5: a product that overflows": (
        "out of the range",
        f"""{HEAD} <{W.replace("{1,", "{1e38,")}, float c = {{1000}}> {{
            a = MatMul(x, w)\n m = Mul(a, c)\n y = Tanh(m) }}""",
    ),
    "5: a division by zero": (
        "out of the range",
        f"{HEAD} <{W}, float c = {{0}}> {{ a = MatMul(x, w)\n m = Div(a, c)\n y = Tanh(m) }}",
    ),
    "2: a bias of a Gemm that a caller may replace": (
        "bias is not a constant",
        f"""g (float[N,2] x, float[2] b) => (float[N,2] y) <{W}, {B}, float c = {{3}}> {{
            a = Gemm(x, w, b)\n y = Mul(a, c) }}""",
    ),
    "4: a Gemm with a bias for each row": (
        "the bias is not one number",
        f"""g (float[3,2] x) => (float[3,2] y) <{W}, float[3,1] b = {{1, 2, 3}}, float c = {{3}}> {{
            a = Gemm(x, w, b)\n y = Mul(a, c) }}""",
    ),
    "6: weights of a Gemm of unknown shape": (
        "not known",
        "g (float[N,M] x, float[M,K] w) => (float[N,K] y) <float c = {3}> { a = Gemm(x, w)\n y = Mul(a, c) }",
    ),
    "6: weights of three axes": (
        "not known",
        """g (float[2,N,2] x) => (float[2,N,2] y) <float[2,2,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float c = {3}> {
            a = MatMul(x, w)\n y = Mul(a, c) }""",
    ),
    "4: a higher rank": (
        "for each channel",
        f"""g (float[N,3,2] x) => (float[1,N,3,2] y) <{W}, float[1,1,1,2] c = {{1, 2}}> {{
            a = MatMul(x, w)\n y = Mul(a, c) }}""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


LEFT_ALONE = {
    "two values": "g (float[N,2,2] x) => (float[N,2,2] y) <float c = {3}> { a = MatMul(x, x)\n y = Mul(a, c) }",
    "weights that a caller may replace": f"""g (float[N,3,2] x, float[2,2] w) => (float[N,3,2] y)
        <{W}, float c = {{3}}> {{
        a = MatMul(x, w)\n y = Mul(a, c) }}""",
    "a bias that a caller may replace": f"""g (float[N,3,2] x, float[2] b) => (float[N,3,2] y)
        <{W}, {B}, float c = {{3}}> {{
        a = MatMul(x, w)\n s = Add(a, b)\n y = Mul(s, c) }}""",
    "a constant divided": f"{HEAD} <{W}, float c = {{3}}> {{ a = MatMul(x, w)\n m = Div(c, a)\n y = Tanh(m) }}",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])


def test_in_a_branch() -> None:
    text = f"""{HEAD.replace("x)", "x, bool f)", 1)} {{
        y = If(f) <then_branch = t () => (float[N,3,2] p) <{W}, float c = {{3}}> {{ a = MatMul(x, w)\n p = Mul(a, c) }},
                   else_branch = e () => (float[N,3,2] q) {{ q = Neg(x) }}>
    }}"""
    assert_rewritten(RULE, "If", text)
