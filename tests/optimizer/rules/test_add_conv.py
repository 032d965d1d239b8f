"""fuse/add-conv: summands before a linear operator, which padding must not see."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/add-conv"
HEAD = "g (float[N,2,4,4] x) => (float[N,2,3,3] y)"
W = "float[2,2,2,2] w = {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1}"
FLAT = "float[2,3] w = {1, 2, 3, 4, 5, 6}"


@pytest.mark.parametrize("constant", ["float c = {0.5}", "float[2,1,1] c = {-1, 2}", "float[1,2,1,1] c = {3, 2}"])
@pytest.mark.parametrize("step", ["Add(x, c)", "Add(c, x)", "Sub(x, c)"])
@pytest.mark.parametrize("conv", ["Conv(a, w)", "Conv<auto_pad = 'VALID'>(a, w, b)", "Conv<pads = [0, 0, 0, 0]>(a, w)"])
def test_rewritten(constant: str, step: str, conv: str) -> None:
    conv = conv.replace("'", '"')
    assert_rewritten(RULE, "Conv", f"{HEAD} <{W}, float[2] b = {{8, 9}}, {constant}> {{ a = {step}\n y = {conv} }}")


REWRITTEN = {
    "groups": (
        "Conv",
        """g (float[N,2,4,4] x) => (float[N,4,4,4] y) <float[4,1,1,1] w = {1, 2, 3, 4}, float[2,1,1] c = {5, 6}> {
            a = Add(x, c)\n y = Conv<group = 2>(a, w) }""",
    ),
    "MatMul": (
        "Gemm",
        f"g (float[N,2] x) => (float[N,3] y) <{FLAT}, float[2] c = {{3, 4}}> {{ a = Add(x, c)\n y = MatMul(a, w) }}",
    ),
    "Gemm": (
        "Gemm",
        f"""g (float[N,3] x) => (float[N,2] y) <{FLAT}, float[2] b = {{8, 9}}, float[3] c = {{3, 4, 5}}> {{
            a = Add(x, c)\n y = Gemm<transB = 1, alpha = 2.0, beta = 0.5>(a, w, b) }}""",
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_forms(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


REFUSED = {
    "2: padding": (
        "padded after",
        f"""g (float[N,2,4,4] x) => (float[N,2,5,5] y) <{W}, float c = {{3}}> {{
            a = Add(x, c)\n y = Conv<pads = [1, 1, 1, 1]>(a, w) }}""",
    ),
    "2: padding by itself": (
        "padded after",
        f"""g (float[N,2,4,4] x) => (float[N,2,4,4] y) <{W}, float c = {{3}}> {{
            a = Add(x, c)\n y = Conv<auto_pad = "SAME_UPPER">(a, w) }}""",
    ),
    "3: along the width": (
        "for each channel",
        f"{HEAD} <{W}, float[4] c = {{1, 2, 3, 4}}> {{ a = Add(x, c)\n y = Conv(a, w) }}",
    ),
    "3: a channel that it widens": (
        "for each channel",
        f"""g (float[N,1,4,4] x) => (float[N,2,3,3] y) <{W}, float[2,1,1] c = {{1, 2}}> {{
            a = Add(x, c)\n y = Conv(a, w) }}""",
    ),
    "1: two readers": (
        "used elsewhere",
        """g (float[N,2,4,4] x) => (float[N,2,4,4] y) <float[2,2,1,1] w = {1, 2, 3, 4}, float c = {3}> {
            a = Add(x, c)\n d = Conv(a, w)\n y = Sub(a, d) }""",
    ),
    "4: a bias that a caller may replace": (
        "bias is not a constant",
        f"""g (float[N,2,4,4] x, float[2] b) => (float[N,2,3,3] y) <{W}, float c = {{3}}> {{
            a = Add(x, c)\n y = Conv(a, w, b) }}""",
    ),
    "4: a bias that overflows": (
        "overflow",
        f"{HEAD} <{W.replace('{1,', '{2,')}, float c = {{3e38}}> {{ a = Add(x, c)\n d = Conv(a, w)\n y = Tanh(d) }}",
    ),
    "6: MatMul of three axes": (
        "no bias",
        f"""g (float[N,4,2] x) => (float[N,4,3] y) <{FLAT}, float[2] c = {{3, 4}}> {{
            a = Add(x, c)\n y = MatMul(a, w) }}""",
    ),
    "5: transposed data": (
        "along the last axis",
        f"""g (float[2,2] x) => (float[2,3] y) <{FLAT}, float[2] c = {{3, 4}}> {{
            a = Add(x, c)\n y = Gemm<transA = 1>(a, w) }}""",
    ),
    "3: a higher rank": (
        "for each channel",
        f"g (float[2] x) => (float[1,3] y) <{FLAT}, float[1,2] c = {{3, 4}}> {{ a = Add(x, c)\n y = MatMul(a, w) }}",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


def test_one_before_takes_it() -> None:
    text = f"""{HEAD} <{W}, float[2,2,1,1] v = {{5, 6, 7, 8}}, float c = {{3}}> {{
        a = Conv(x, v)\n m = Add(a, c)\n y = Conv(m, w) }}"""
    assert_left_alone(RULE, text)
