"""algebra/zero-bias: zeros that are stored, and zeros that are made."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/zero-bias"
HEAD = "g (float[N,2,3,3] x) => (float[N,2,H,V] y)"
W = "float[2,2,1,1] w = {1, 2, 3, 4}"
FLAT = "float[2,3] w = {1, 2, 3, 4, 5, 6}"


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("zeros", ["0, 0", "-0.0, 0"])
def test_stored(op: str, zeros: str) -> None:
    text = f"{HEAD} <{W}, float[2] b = {{{zeros}}}> {{ y = {op}<strides = [2, 2]>(x, w, b) }}"
    result = assert_rewritten(RULE, op, text)
    assert list(result.graph.node(0).attributes) == ["strides"]


def test_made() -> None:
    text = f"{HEAD} <{W}, int64[1] n = {{2}}> {{ b = ConstantOfShape(n)\n y = Conv(x, w, b) }}"
    assert_rewritten(RULE, "Conv", text)


def test_gemm() -> None:
    text = f"g (float[N,2] x) => (float[N,3] y) <{FLAT}, float b = {{0}}> {{ y = Gemm<alpha = 2.0>(x, w, b) }}"
    assert_rewritten(RULE, "Gemm", text)


@refuses(RULE, 1)
def test_gemm_that_needs_a_third_input() -> None:
    text = f"g (float[N,2] x) => (float[N,3] y) <{FLAT}, float b = {{0}}> {{ y = Gemm<alpha = 2.0>(x, w, b) }}"
    assert_refused(RULE, "before opset 11", text, opset=9)


def test_a_normalisation_after_it() -> None:
    text = f"""{HEAD} <{W}, int64[1] n = {{2}}, float[2] s = {{1, 2}}, float[2] v = {{3, 4}}> {{
        b = ConstantOfShape(n)\n a = Conv(x, w, b)\n y = BatchNormalization(a, s, s, s, v) }}"""
    assert_rewritten(RULE, "Conv", text)


@pytest.mark.parametrize("bias", ["float[2] b = {0, 1}", "float[2] b = {1, 1}"])
def test_others(bias: str) -> None:
    assert_left_alone(RULE, f"{HEAD} <{W}, {bias}> {{ y = Conv(x, w, b) }}")


def test_zeros_that_a_caller_may_replace() -> None:
    text = f"{HEAD.replace('x)', 'x, float[2] b)', 1)} <{W}, float[2] b = {{0, 0}}> {{ y = Conv(x, w, b) }}"
    assert_left_alone(RULE, text)
