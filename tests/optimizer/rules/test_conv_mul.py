"""fuse/conv-mul: factors that are one number for each channel, and weights that may not be changed."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_refused, assert_rewritten

RULE = "fuse/conv-mul"
HEAD = "g (float[N,1,4,4] x) => (float[N,2,4,4] y)"
W = "float[2,1,1,1] w = {2, 3}"


@pytest.mark.parametrize("constant", ["float c = {0.5}", "float[2,1,1] c = {-1, 2}", "float[1,2,1,1] c = {0, 2}"])
@pytest.mark.parametrize("product", ["Mul(a, c)", "Mul(c, a)"])
def test_rewritten(constant: str, product: str) -> None:
    assert_rewritten(RULE, "Conv", f"{HEAD} <{W}, {constant}> {{ a = Conv(x, w)\n y = {product} }}")


def test_weights_bias_and_sum_in_one() -> None:
    text = f"""{HEAD} <{W}, float[2] b = {{1, 2}}, float[2,1,1] c = {{3, 4}}, float[2,1,1] d = {{5, 6}}> {{
        a = Conv(x, w, b)\n m = Mul(a, c)\n y = Add(m, d) }}"""
    result = assert_rewritten(RULE, "Conv", text)
    bias = next(iter(result.graph)).inputs[2]
    assert bias is not None
    assert bias.const_value is not None
    assert bias.const_value.numpy().tolist() == [8, 14]


def test_a_small_product_beside_a_large_one() -> None:
    text = """g (float[N,2,4,4] x) => (float[N,1,4,4] y) <float[1,2,1,1] w = {1e-38, 3}, float c = {0.01}> {
        a = Conv(x, w)\n y = Mul(a, c) }"""
    assert_rewritten(RULE, "Conv", text)


def test_weights_of_two_that_are_scaled_alike() -> None:
    text = f"""{HEAD} <{W}> {{
        a = Conv(x, w)\n b = Neg(a)\n c = Exp(x)\n d = Conv(c, w)\n e = Neg(d)\n y = Sub(b, e) }}"""
    result = assert_rewritten(RULE, "Conv Exp Conv Sub", text)
    assert len(result.graph.initializers) == 1


REFUSED = {
    "4: along the width": (
        "for each channel",
        f"{HEAD} <{W}, float[4] c = {{1, 2, 3, 4}}> {{ a = Conv(x, w)\n y = Mul(a, c) }}",
    ),
    "2: weights that a caller may replace": (
        "not constants",
        f"""g (float[N,1,4,4] x, float[2,1,1,1] w) => (float[N,2,4,4] y) <{W}, float c = {{3}}> {{
            a = Conv(x, w)\n y = Mul(a, c) }}""",
    ),
    "3: weights of two": (
        "weights are also used elsewhere",
        f"{HEAD} <{W}, float c = {{3}}> {{ a = Conv(x, w)\n b = Mul(a, c)\n d = Conv(x, w)\n y = Sub(d, b) }}",
    ),
    "3: weights of two that are scaled in other ways": (
        "weights are also used elsewhere",
        f"""{HEAD} <{W}, float c = {{3}}> {{
            a = Conv(x, w)\n b = Mul(a, c)\n d = Conv(x, w)\n e = Neg(d)\n y = Sub(e, b) }}""",
    ),
    "1: two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, float c = {{3}}> {{ a = Conv(x, w)\n b = Mul(a, c)\n y = Sub(a, b) }}",
    ),
    "5: a product that overflows": (
        "out of the range",
        (
            f"{HEAD} "
            f"<{W.replace('2, 3', '1e38, 3')}, float c = {{100}}> {{ a = Conv(x, w)\n b = Mul(a, c)\n y = Tanh(b) }}"
        ),
    ),
    "5: a product that underflows": (
        "out of the range",
        (
            f"{HEAD} "
            f"<{W.replace('2, 3', '1e-38, 3')}, float c = {{0.01}}> {{ a = Conv(x, w)\n b = Mul(a, c)\n y = Tanh(b) }}"
        ),
    ),
    "5: a sum that overflows where the result does not": (
        "overflows or becomes 0",
        f"{HEAD} <{W.replace('2, 3', '1e30, 3')}, float c = {{1e-30}}> {{ a = Conv(x, w)\n y = Mul(a, c) }}",
    ),
    "5: a sum that becomes 0 where the result does not": (
        "overflows or becomes 0",
        f"{HEAD} <{W.replace('2, 3', '1e-30, 3')}, float c = {{1e30}}> {{ a = Conv(x, w)\n y = Mul(a, c) }}",
    ),
    "6: weights of unknown shape": (
        "not known",
        """g (float[N,1,4,4] x, float[C,1,1,1] w) => (float[N,C,4,4] y) <float c = {3}> {
            a = Conv(x, w)\n y = Mul(a, c) }""",
    ),
    "4: a higher rank": (
        "for each channel",
        f"""g (float[N,1,4,4] x) => (float[1,N,2,4,4] y) <{W}, float[1,1,1,1,1] c = {{3}}> {{
            a = Conv(x, w)\n y = Mul(a, c) }}""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])
