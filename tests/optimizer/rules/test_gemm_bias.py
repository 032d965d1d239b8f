"""fuse/gemm-bias: constants that are one row."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_refused, assert_rewritten

RULE = "fuse/gemm-bias"
HEAD = "g (float[N,2] x) => (float[N,2] y)"
W = "float[2,2] w = {1, 2, 3, 4}"


@pytest.mark.parametrize("constant", ["float c = {0.5}", "float[2] c = {-1, 2}", "float[1,1] c = {2}"])
@pytest.mark.parametrize("product", ["Gemm(x, w)", "Gemm<beta = 0.5, transB = 1>(x, w, b)", "Gemm(x, w, n)"])
@pytest.mark.parametrize("step", ["Add(a, c)", "Add(c, a)", "Sub(a, c)"])
def test_rewritten(constant: str, product: str, step: str) -> None:
    text = f"{HEAD} <{W}, float[2] b = {{5, 6}}, float n = {{7}}, {constant}> {{ a = {product}\n y = {step} }}"
    assert_rewritten(RULE, "Gemm", text)


REFUSED = {
    "3: for each row": (
        "for each channel",
        f"g (float[2,2] x) => (float[2,2] y) <{W}, float[2,1] c = {{1, 2}}> {{ a = Gemm(x, w)\n y = Add(a, c) }}",
    ),
    "1: two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, float c = {{1}}> {{ a = Gemm(x, w)\n s = Add(a, c)\n y = Mul(s, a) }}",
    ),
    "1: an output": (
        "used elsewhere",
        f"g (float[N,2] x) => (float[N,2] y, float[N,2] a) <{W}, float c = {{1}}> {{ a = Gemm(x, w)\n y = Add(a, c) }}",
    ),
    "2: a bias that a caller may replace": (
        "bias is not a constant",
        f"""g (float[N,2] x, float[2] b) => (float[N,2] y) <{W}, float c = {{1}}> {{
            a = Gemm(x, w, b)\n y = Add(a, c) }}""",
    ),
    "3: a higher rank": (
        "for each channel",
        f"g (float[N,2] x) => (float[1,N,2] y) <{W}, float[1,1,1] c = {{1}}> {{ a = Gemm(x, w)\n y = Add(a, c) }}",
    ),
    "4: weights of unknown shape": (
        "not known",
        "g (float[N,M] x, float[M,K] w) => (float[N,K] y) <float c = {1}> { a = Gemm(x, w)\n y = Add(a, c) }",
    ),
    "5: a sum that overflows": (
        "overflow",
        f"""{HEAD} <{W}, float b = {{3e38}}, float c = {{3e38}}> {{
            a = Gemm(x, w, b)\n s = Add(a, c)\n y = Sigmoid(s) }}""",
    ),
    "2: a bias for each row": (
        "the bias is not one number",
        f"""g (float[3,2] x) => (float[3,2] y) <{W}, float[3,1] b = {{1, 2, 3}}, float c = {{1}}> {{
            a = Gemm(x, w, b)\n y = Add(a, c) }}""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])
