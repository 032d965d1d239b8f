"""fuse/gemm-batchnorm: products of matrices, and products of more."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refusals, refuses
from tests.rewrites import assert_refused, assert_rewritten, head

RULE = "fuse/gemm-batchnorm"
HEAD = "g (float[N,2] x) => (float[N,2] y)"
W = "float[2,2] w = {1, 2, 3, 4}"
STATISTICS = "float[2] s = {1, 2}, float[2] b = {3, 4}, float[2] m = {5, 6}, float[2] v = {7, 8}"
BN = "y = BatchNormalization(a, s, b, m, v)"


@pytest.mark.parametrize(
    "product", ["MatMul(x, w)", "Gemm(x, w)", "Gemm<transB = 1, alpha = 2.0>(x, w, c)", "Gemm<beta = 0.5>(x, w, c)"]
)
def test_rewritten(product: str) -> None:
    assert_rewritten(RULE, "Gemm", f"{HEAD} <{W}, float[2] c = {{8, 9}}, {STATISTICS}> {{ a = {product}\n {BN} }}")


REFUSED = {
    "6: columns that are no channels": (
        "for each channel",
        f"g (float[N,2,2] x) => (float[N,2,2] y) <{W}, {STATISTICS}> {{ a = MatMul(x, w)\n {BN} }}",
    ),
    "1: two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, {STATISTICS}> {{ a = Gemm(x, w)\n n{BN[1:]}\n y = Add(a, n) }}",
    ),
    "3: training": (
        "training",
        f"""{HEAD} <{W}, {STATISTICS}> {{
            a = Gemm(x, w)\n y, n, o = BatchNormalization<training_mode = 1>(a, s, b, m, v) }}""",
    ),
    "2: a scale that a caller may replace": (
        "scale is not a constant",
        f"g (float[N,2] x, float[2] s) => (float[N,2] y) <{W}, {STATISTICS}> {{ a = Gemm(x, w)\n {BN} }}",
    ),
    "5: shared weights": (
        "weights are also used elsewhere",
        f"{HEAD} <{W}, {STATISTICS}> {{ a = Gemm(x, w)\n n{BN[1:]}\n y = Gemm(n, w) }}",
    ),
    "7: a product that overflows": (
        "out of the range",
        f"""{HEAD} <{W.replace("{1,", "{1e38,")}, {STATISTICS.replace("s = {1,", "s = {1000,")}> {{
            a = Gemm(x, w)\n {BN.replace("y", "n")}\n y = Tanh(n) }}""",
    ),
    "7: a variance below zero": (
        "out of the range",
        f"{HEAD} <{W}, {STATISTICS.replace('7, 8', '-7, 8')}> {{ a = Gemm(x, w)\n {BN} }}",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


@refuses(RULE, 4)
def test_by_position() -> None:
    text = f"""{HEAD} <{W}, {STATISTICS}> {{
        a = Gemm(x, w, b)\n y = BatchNormalization<spatial = 0>(a, s, b, m, v) }}"""
    _, part = simplified(from_text(head(8) + text))  # no runtime here computes it
    assert not part.fired
    assert any(entry.rule == RULE and "each position" in entry.why_not for entry in part.refused)
