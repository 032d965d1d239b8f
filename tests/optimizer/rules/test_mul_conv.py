"""fuse/mul-conv: factors before a linear operator, and which of two neighbours takes them."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/mul-conv"
HEAD = "g (float[N,2,4,4] x) => (float[N,2,4,4] y)"
W = "float[2,2,1,1] w = {1, 2, 3, 4}"
FLAT = "float[2,2] w = {1, 2, 3, 4}"


@pytest.mark.parametrize("constant", ["float c = {0.5}", "float[2,1,1] c = {-1, 2}", "float[1,2,1,1] c = {3, 2}"])
@pytest.mark.parametrize("step", ["Mul(x, c)", "Mul(c, x)", "Div(x, c)", "Neg(x)"])
def test_rewritten(constant: str, step: str) -> None:
    assert_rewritten(RULE, "Conv", f"{HEAD} <{W}, {constant}> {{ a = {step}\n y = Conv(a, w) }}")


REWRITTEN = {
    "padding": (
        "Conv",
        f"""g (float[N,2,4,4] x) => (float[N,2,6,6] y) <{W}, float[2] b = {{8, 9}}, float[2,1,1] c = {{3, 4}}> {{
            a = Mul(x, c)\n y = Conv<pads = [1, 1, 1, 1]>(a, w, b) }}""",
    ),
    "groups": (
        "Conv",
        f"""{HEAD} <float[2,1,1,1] w = {{5, 6}}, float[2,1,1] c = {{3, 4}}> {{
            a = Mul(x, c)\n y = Conv<group = 2>(a, w) }}""",
    ),
    "transposed": (
        "ConvTranspose",
        f"{HEAD} <{W}, float[2,1,1] c = {{3, 4}}> {{ a = Mul(x, c)\n y = ConvTranspose(a, w) }}",
    ),
    "transposed in groups": (
        "ConvTranspose",
        f"""{HEAD} <float[2,1,1,1] w = {{5, 6}}, float[2,1,1] c = {{3, 4}}> {{
            a = Mul(x, c)\n y = ConvTranspose<group = 2>(a, w) }}""",
    ),
    "MatMul": (
        "MatMul",
        f"""g (float[N,3,2] x) => (float[N,3,2] y) <{FLAT}, float[2] c = {{3, 4}}> {{
            a = Mul(x, c)\n y = MatMul(a, w) }}""",
    ),
    "Gemm": (
        "Gemm",
        f"""g (float[N,2] x) => (float[N,2] y) <{FLAT}, float[2] b = {{8, 9}}, float[2] c = {{3, 4}}> {{
            a = Mul(x, c)\n y = Gemm<transB = 1>(a, w, b) }}""",
    ),
    "a Conv before that others read": (
        "Conv Conv Add",
        f"""{HEAD} <{W}, float[2,2,1,1] v = {{5, 6, 7, 8}}, float c = {{3}}> {{
            a = Conv(x, v)\n m = Mul(a, c)\n d = Conv(m, w)\n y = Add(a, d) }}""",
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_forms(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


def test_one_before_takes_it() -> None:
    text = f"""{HEAD} <{W}, float[2,2,1,1] v = {{5, 6, 7, 8}}, float c = {{3}}> {{
        a = Conv(x, v)\n m = Mul(a, c)\n y = Conv(m, w) }}"""
    assert_left_alone(RULE, text)
    assert_rewritten("fuse/conv-mul", "Conv Conv", text)


REFUSED = {
    "3: along the width": (
        "for each channel",
        f"{HEAD} <{W}, float[4] c = {{1, 2, 3, 4}}> {{ a = Mul(x, c)\n y = Conv(a, w) }}",
    ),
    "3: a channel that it widens": (
        "for each channel",
        f"""g (float[N,1,4,4] x) => (float[N,2,4,4] y) <{W}, float[2,1,1] c = {{1, 2}}> {{
            a = Mul(x, c)\n y = Conv(a, w) }}""",
    ),
    "3: channels of unknown number": (
        "for each channel",
        f"""g (float[N,C,4,4] x) => (float[N,2,4,4] y) <{W}, float[2,1,1] c = {{1, 2}}> {{
            a = Mul(x, c)\n y = Conv(a, w) }}""",
    ),
    "1: two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, float c = {{3}}> {{ a = Mul(x, c)\n d = Conv(a, w)\n y = Sub(a, d) }}",
    ),
    "2: shared weights": (
        "weights are also used elsewhere",
        f"{HEAD} <{W}, float c = {{3}}> {{ a = Mul(x, c)\n d = Conv(a, w)\n e = Tanh(d)\n y = Conv(e, w) }}",
    ),
    "4: a product that overflows": (
        "out of the range",
        f"{HEAD} <{W.replace('{1,', '{1e38,')}, float c = {{1e3}}> {{ a = Mul(x, c)\n d = Conv(a, w)\n y = Tanh(d) }}",
    ),
    "4: data that becomes 0 where the result does not": (
        "overflows or becomes 0",
        f"{HEAD} <{W.replace('{1,', '{1e30,')}, float c = {{1e-30}}> {{ a = Mul(x, c)\n y = Conv(a, w) }}",
    ),
    "5: transposed data": (
        "along the last axis",
        f"""g (float[2,N] x) => (float[N,2] y) <{FLAT}, float c = {{3}}> {{
            a = Mul(x, c)\n y = Gemm<transA = 1>(a, w) }}""",
    ),
    "6: weights of three axes": (
        "not known",
        """g (float[2,N,2] x) => (float[2,N,2] y) <float[2,2,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] c = {3, 4}> {
            a = Mul(x, c)\n y = MatMul(a, w) }""",
    ),
    "3: a higher rank": (
        "for each channel",
        f"g (float[2] x) => (float[1,2] y) <{FLAT}, float[1,2] c = {{3, 4}}> {{ a = Mul(x, c)\n y = MatMul(a, w) }}",
    ),
    "5: transposed data, a factor for each column": (
        "along the last axis",
        f"""g (float[2,2] x) => (float[2,2] y) <{FLAT}, float[2] c = {{3, 4}}> {{
            a = Mul(x, c)\n y = Gemm<transA = 1>(a, w) }}""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


def test_weights_that_a_caller_may_replace() -> None:
    text = (
        f"{HEAD.replace('x)', 'x, float[2,2,1,1] w)', 1)} <{W}, float c = {{3}}> {{ a = Mul(x, c)\n y = Conv(a, w) }}"
    )
    assert_left_alone(RULE, text)


def test_a_normalisation_keeps_its_scale() -> None:
    text = f"""g (float[N,2] x) => (float[N,2] y)
    <{FLAT}, float two = {{2}}, float eps = {{0.00001}}, float[2] s = {{2, 3}}, int64[1] last = {{-1}}> {{
        q = Pow(x, two)\n v = ReduceMean<axes = [-1]>(q)\n e = Add(v, eps)\n r = Sqrt(e)\n i = Div(x, r)
        n = Mul(i, s)\n y = MatMul(n, w)
    }}"""
    assert_left_alone(RULE, text)
