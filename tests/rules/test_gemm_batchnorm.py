"""fuse/gemm-batchnorm: products of matrices, and products of more."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_refused, assert_rewritten

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
    "columns that are no channels": (
        "for each channel",
        f"g (float[N,2,2] x) => (float[N,2,2] y) <{W}, {STATISTICS}> {{ a = MatMul(x, w)\n {BN} }}",
    ),
    "two readers": ("used elsewhere", f"{HEAD} <{W}, {STATISTICS}> {{ a = Gemm(x, w)\n n{BN[1:]}\n y = Add(a, n) }}"),
    "training": (
        "training",
        f"""{HEAD} <{W}, {STATISTICS}> {{
            a = Gemm(x, w)\n y, n, o = BatchNormalization<training_mode = 1>(a, s, b, m, v) }}""",
    ),
    "a scale that a caller may replace": (
        "scale is not a constant",
        f"g (float[N,2] x, float[2] s) => (float[N,2] y) <{W}, {STATISTICS}> {{ a = Gemm(x, w)\n {BN} }}",
    ),
    "shared weights": (
        "weights are used elsewhere",
        f"{HEAD} <{W}, {STATISTICS}> {{ a = Gemm(x, w)\n n{BN[1:]}\n y = Gemm(n, w) }}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])
