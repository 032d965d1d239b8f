"""fuse/batchnorm-conv: normalisations before a linear operator."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/batchnorm-conv"
HEAD = "g (float[N,2,4,4] x) => (float[N,3,4,4] y)"
W = "float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}"
STATISTICS = "float[2] s = {1, 2}, float[2] b = {3, 4}, float[2] m = {5, 6}, float[2] v = {7, 8}"
BN = "a = BatchNormalization(x, s, b, m, v)"

REWRITTEN = {
    "Conv": ("Conv", f"{HEAD} <{W}, float[3] c = {{7, 8, 9}}, {STATISTICS}> {{ {BN}\n y = Conv(a, w, c) }}"),
    "a shift of zero": (
        "Conv",
        f"""g (float[N,2,4,4] x) => (float[N,3,6,6] y)
            <{W}, {STATISTICS.replace("3, 4", "0, 0").replace("5, 6", "0, 0")}> {{
            {BN}\n y = Conv<pads = [1, 1, 1, 1]>(a, w) }}""",
    ),
    "MatMul": (
        "Gemm",
        f"""g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {{1, 2, 3, 4}}, {STATISTICS}> {{
            {BN}\n y = MatMul(a, w) }}""",
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


REFUSED = {
    "padding": (
        "padded after",
        f"""g (float[N,2,4,4] x) => (float[N,3,6,6] y) <{W}, {STATISTICS}> {{
            {BN}\n y = Conv<pads = [1, 1, 1, 1]>(a, w) }}""",
    ),
    "two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, {STATISTICS}> {{ {BN}\n d = Conv(a, w)\n e = ReduceMax<axes = [1]>(a)\n y = Sub(d, e) }}",
    ),
    "training": (
        "training",
        f"""{HEAD} <{W}, {STATISTICS}> {{
            a, n, o = BatchNormalization<training_mode = 1>(x, s, b, m, v)\n y = Conv(a, w) }}""",
    ),
    "columns that are no channels": (
        "for each channel",
        f"""g (float[N,2,2] x) => (float[N,2,2] y) <float[2,2] w = {{1, 2, 3, 4}}, {STATISTICS}> {{
            {BN}\n y = MatMul(a, w) }}""",
    ),
    "a mean that a caller may replace": (
        "mean is not a constant",
        f"g (float[N,2,4,4] x, float[2] m) => (float[N,3,4,4] y) <{W}, {STATISTICS}> {{ {BN}\n y = Conv(a, w) }}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


def test_one_before_takes_it() -> None:
    text = f"""{HEAD} <{W}, float[2,2,1,1] u = {{5, 6, 7, 8}}, {STATISTICS}> {{
        o = Conv(x, u)\n {BN.replace("x,", "o,")}\n y = Conv(a, w) }}"""
    assert_left_alone(RULE, text)


def test_activation_between() -> None:
    assert_left_alone(RULE, f"{HEAD} <{W}, {STATISTICS}> {{ {BN}\n r = Relu(a)\n y = Conv(r, w) }}")
