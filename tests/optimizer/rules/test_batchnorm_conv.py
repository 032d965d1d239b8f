"""fuse/batchnorm-conv: normalisations before a linear operator."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "fuse/batchnorm-conv"
HEAD = "g (float[N,2,4,4] x) => (float[N,3,4,4] y)"
W = "float[3,2,1,1] w = {1, 2, 3, 4, 5, 6}"
STATISTICS = "float[2] s = {1, 2}, float[2] b = {3, 4}, float[2] m = {5, 6}, float[2] v = {7, 8}"
BN = "a = BatchNormalization(x, s, b, m, v)"

UNSHIFTED = STATISTICS.replace("3, 4", "0, 0").replace("5, 6", "0, 0")


def upsampled(statistics: str, more: str = "strides = [2, 2]", kernel: int = 2) -> str:
    weights = ", ".join(str(1 + i) for i in range(6 * kernel * kernel))
    return f"""g (float[N,2,4,4] x) => (float[N,3,H,W] y)
        <float[2,3,{kernel},{kernel}] w = {{{weights}}}, {statistics}> {{ {BN}\n y = ConvTranspose<{more}>(a, w) }}"""


REWRITTEN = {
    "Conv": ("Conv", f"{HEAD} <{W}, float[3] c = {{7, 8, 9}}, {STATISTICS}> {{ {BN}\n y = Conv(a, w, c) }}"),
    "a shift of zero": (
        "Conv",
        f"""g (float[N,2,4,4] x) => (float[N,3,6,6] y)
            <{W}, {STATISTICS.replace("3, 4", "0, 0").replace("5, 6", "0, 0")}> {{
            {BN}\n y = Conv<pads = [1, 1, 1, 1]>(a, w) }}""",
    ),
    "ConvTranspose without a shift": ("ConvTranspose", upsampled(UNSHIFTED)),
    "ConvTranspose that cuts, without a shift": ("ConvTranspose", upsampled(UNSHIFTED, "pads = [1, 1, 0, 0]")),
    "MatMul": (
        "Gemm",
        f"""g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {{1, 2, 3, 4}}, {STATISTICS}> {{
            {BN}\n y = MatMul(a, w) }}""",
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


def test_a_transposed_convolution_of_a_pixel() -> None:
    text = f"""g (float[N,2,4,4] x) => (float[N,4,4,4] y)
        <float[2,2,1,1] w = {{1, 2, 3, 4}}, float[4] c = {{7, 8, 9, 10}}, {STATISTICS}> {{
        {BN}\n y = ConvTranspose<group = 2, strides = [1, 1], output_padding = [0, 0]>(a, w, c) }}"""
    assert_rewritten(RULE, "ConvTranspose", text, runtime="onnxruntime")  # the reference takes no groups here


STILL = "float[2] s = {1000, 2}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {7, 8}"
REFUSED = {
    "6: padding": (
        "padded after",
        f"""g (float[N,2,4,4] x) => (float[N,3,6,6] y) <{W}, {STATISTICS}> {{
            {BN}\n y = Conv<pads = [1, 1, 1, 1]>(a, w) }}""",
    ),
    "1: two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, {STATISTICS}> {{ {BN}\n d = Conv(a, w)\n e = ReduceMax<axes = [1]>(a)\n y = Sub(d, e) }}",
    ),
    "3: training": (
        "training",
        f"""{HEAD} <{W}, {STATISTICS}> {{
            a, n, o = BatchNormalization<training_mode = 1>(x, s, b, m, v)\n y = Conv(a, w) }}""",
    ),
    "8: ConvTranspose with a larger kernel": ("different weights apply the shift", upsampled(STATISTICS)),
    "8: ConvTranspose with a stride": ("different weights apply the shift", upsampled(STATISTICS, kernel=1)),
    "8: ConvTranspose with larger outputs": (
        "different weights apply the shift",
        upsampled(STATISTICS, "strides = [1, 1], output_shape = [4, 4]", 1),
    ),
    "6: ConvTranspose that cuts": ("padded after", upsampled(STATISTICS, "pads = [1, 1, 0, 0]")),
    "9: columns that are no channels": (
        "for each channel",
        f"""g (float[N,2,2] x) => (float[N,2,2] y) <float[2,2] w = {{1, 2, 3, 4}}, {STATISTICS}> {{
            {BN}\n y = MatMul(a, w) }}""",
    ),
    "2: a mean that a caller may replace": (
        "mean is not a constant",
        f"g (float[N,2,4,4] x, float[2] m) => (float[N,3,4,4] y) <{W}, {STATISTICS}> {{ {BN}\n y = Conv(a, w) }}",
    ),
    "5: shared weights": (
        "weights are also used elsewhere",
        f"{HEAD} <{W}, {STATISTICS}> {{ {BN}\n d = Conv(a, w)\n e = Conv(x, w)\n y = Sub(d, e) }}",
    ),
    "7: a product that overflows": (
        "out of the range",
        f"""{HEAD} <{W.replace("{1,", "{1e38,")}, {STILL}> {{
            {BN}\n d = Conv(a, w)\n y = Tanh(d) }}""",
    ),
    "7: a bias that overflows": (
        "overflow",
        f"""{HEAD} <{W.replace("{1,", "{2,")}, {STATISTICS.replace("{3,", "{3e38,")}> {{
            {BN}\n d = Conv(a, w)\n y = Tanh(d) }}""",
    ),
    "9: transposed data": (
        "along the last axis",
        f"""g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {{1, 2, 3, 4}}, {STATISTICS}> {{
            {BN}\n y = Gemm<transA = 1>(a, w) }}""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


@refuses(RULE, 4)
def test_by_position() -> None:
    text = """g (float[N,1,1,1] x) => (float[N,1,1,1] y) <float[1,1,1,1] w = {2}, float[1] s = {1}, float[1] b = {3},
        float[1] m = {5}, float[1] v = {7}> { a = BatchNormalization<spatial = 0>(x, s, b, m, v)\n y = Conv(a, w) }"""
    _, part = simplified(from_text(head(8) + text))  # no runtime here computes it
    assert not part.fired
    assert any(entry.rule == RULE and "each position" in entry.why_not for entry in part.refused)


def test_one_before_takes_it() -> None:
    text = f"""{HEAD} <{W}, float[2,2,1,1] u = {{5, 6, 7, 8}}, {STATISTICS}> {{
        o = Conv(x, u)\n {BN.replace("x,", "o,")}\n y = Conv(a, w) }}"""
    assert_left_alone(RULE, text)


def test_activation_between() -> None:
    assert_left_alone(RULE, f"{HEAD} <{W}, {STATISTICS}> {{ {BN}\n r = Relu(a)\n y = Conv(r, w) }}")
