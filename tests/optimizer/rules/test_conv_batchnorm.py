"""fuse/conv-batchnorm: statistics that are constants, and normalisations that train."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "fuse/conv-batchnorm"
HEAD = "g (float[N,2,4,4] x) => (float[N,2,4,4] y)"
W = "float[2,2,1,1] w = {1, 2, 3, 4}"
STATISTICS = "float[2] s = {1, 2}, float[2] b = {3, 4}, float[2] m = {5, 6}, float[2] v = {7, 8}"
BN = "y = BatchNormalization(a, s, b, m, v)"

REWRITTEN = {
    "no bias": f"{HEAD} <{W}, {STATISTICS}> {{ a = Conv(x, w)\n {BN} }}",
    "a bias": f"{HEAD} <{W}, float[2] c = {{1, 2}}, {STATISTICS}> {{ a = Conv(x, w, c)\n {BN} }}",
    "groups": f"""{HEAD} <float[2,1,1,1] w = {{2, 3}}, {STATISTICS}> {{
        a = Conv<group = 2>(x, w)\n y = BatchNormalization<epsilon = 0.5>(a, s, b, m, v) }}""",
    "a scale of almost nothing": f"""{HEAD} <{W}, {STATISTICS.replace("s = {1, 2}", "s = {1e-42, 2}")}> {{
        a = Conv(x, w)\n {BN} }}""",
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, "Conv", REWRITTEN[case])


@pytest.mark.parametrize("group", [1, 2])
def test_transposed(group: int) -> None:
    text = f"""g (float[N,2,2,2] x) => (float[N,2,4,4] y) <float[2,{2 // group},2,2] w = {{
        {", ".join(str(n) for n in range(16 // group))}}}, {STATISTICS}> {{
        a = ConvTranspose<group = {group}, strides = [2, 2]>(x, w)\n {BN} }}"""
    # the reference evaluator gives every group the first group's bias
    assert_rewritten(RULE, "ConvTranspose", text, runtime="onnxruntime" if group > 1 else "reference")


REFUSED = {
    "1: two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, {STATISTICS}> {{ a = Conv(x, w)\n n = {BN[4:]}\n y = Add(a, n) }}",
    ),
    "2: statistics that a caller may replace": (
        "mean is not a constant",
        f"g (float[N,2,4,4] x, float[2] m) => (float[N,2,4,4] y) <{W}, {STATISTICS}> {{ a = Conv(x, w)\n {BN} }}",
    ),
    "2: weights that a caller may replace": (
        "not constants",
        f"g (float[N,2,4,4] x, float[2,2,1,1] w) => (float[N,2,4,4] y) <{W}, {STATISTICS}> {{ a = Conv(x, w)\n {BN} }}",
    ),
    "5: shared weights": (
        "weights are also used elsewhere",
        f"{HEAD} <{W}, {STATISTICS}> {{ a = Conv(x, w)\n n = BatchNormalization(a, s, b, m, v)\n y = Conv(n, w) }}",
    ),
    "6: a product that overflows": (
        "out of the range",
        f"""{HEAD} <{W.replace("{1,", "{1e38,")}, {STATISTICS.replace("s = {1,", "s = {1000,")}> {{
            a = Conv(x, w)\n {BN.replace("y", "n")}\n y = Tanh(n) }}""",
    ),
    "6: a variance below zero": (
        "out of the range",
        f"{HEAD} <{W}, {STATISTICS.replace('7, 8', '-7, 8')}> {{ a = Conv(x, w)\n {BN} }}",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


@refuses(RULE, 3)
def test_training() -> None:
    text = f"""{HEAD} <{W}, {STATISTICS}> {{ a = Conv(x, w)
        y, mean, variance = BatchNormalization<training_mode = 1>(a, s, b, m, v) }}"""
    assert_refused(RULE, "training", text)


@refuses(RULE, 4)
def test_by_position() -> None:
    text = """g (float[N,1,1,1] x) => (float[N,1,1,1] y) <float[1,1,1,1] w = {2}, float[1] s = {1}, float[1] b = {3},
        float[1] m = {5}, float[1] v = {7}> { a = Conv(x, w)\n y = BatchNormalization<spatial = 0>(a, s, b, m, v) }"""
    _, part = simplified(from_text(head(8) + text))  # no runtime here computes it
    assert not part.fired
    assert any("each position" in entry.why_not for entry in part.refused)


def test_alone() -> None:
    assert_left_alone(RULE, f"{HEAD} <{STATISTICS}> {{ a = Relu(x)\n {BN} }}")
