"""fuse/conv-bias: constants that are one number for each channel, and those that are not."""

from __future__ import annotations

import pytest

from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/conv-bias"
HEAD = "g (float[N,1,4,4] x) => (float[N,2,4,4] y)"
W = "float[2,1,1,1] w = {2, 3}"

REWRITTEN = {
    "one number": f"{HEAD} <{W}, float c = {{0.5}}> {{ a = Conv(x, w)\n y = Add(c, a) }}",
    "no batch axis": f"{HEAD} <{W}, float[2,1,1] c = {{1, 2}}> {{ a = Conv(x, w)\n y = Add(a, c) }}",
    "a bias": f"{HEAD} <{W}, float[2] b = {{3, 4}}, float[2,1,1] c = {{1, 2}}> {{ a = Conv(x, w, b)\n y = Add(a, c) }}",
    "weights that a caller may replace": f"""g (float[N,1,4,4] x, float[2,1,1,1] w) => (float[N,2,4,4] y)
        <{W}, float[2,1,1] c = {{1, 2}}> {{ a = Conv(x, w)\n y = Add(a, c) }}""",
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, "Conv", REWRITTEN[case])


REFUSED = {
    "3: along the width": (
        "for each channel",
        f"{HEAD} <{W}, float[4] c = {{1, 2, 3, 4}}> {{ a = Conv(x, w)\n y = Add(a, c) }}",
    ),
    "3: along the batch": (
        "for each channel",
        f"{HEAD} <{W}, float[2,1,1,1] c = {{1, 2}}> {{ a = Conv(x, w)\n b = Add(a, c)\n y = ReduceMax(b) }}",
    ),
    "3: a channel that it widens": (
        "for each channel",
        """g (float[N,1,4,4] x) => (float[N,2,4,4] y) <float[1,1,1,1] w = {2}, float[2,1,1] c = {1, 2}> {
            a = Conv(x, w)\n y = Add(a, c) }""",
    ),
    "3: a higher rank": (
        "for each channel",
        f"{HEAD} <{W}, float[1,1,1,1,1] c = {{1}}> {{ a = Conv(x, w)\n b = Add(a, c)\n y = ReduceMax(b) }}",
    ),
    "2: a bias that a caller may replace": (
        "bias is not a constant",
        f"""g (float[N,1,4,4] x, float[2] b) => (float[N,2,4,4] y) <{W}, float[2] b = {{3, 4}}, float c = {{1}}> {{
            a = Conv(x, w, b)\n y = Add(a, c) }}""",
    ),
    "1: two readers": (
        "used elsewhere",
        f"{HEAD} <{W}, float c = {{1}}> {{ a = Conv(x, w)\n b = Add(a, c)\n y = Mul(a, b) }}",
    ),
    "1: an output": (
        "used elsewhere",
        (
            f"g (float[N,1,4,4] x) => (float[N,2,4,4] a, float[N,2,4,4] y) "
            f"<{W}, float c = {{1}}> {{ a = Conv(x, w)\n y = Add(a, c) }}"
        ),
    ),
    "4: weights of unknown shape": (
        "not known",
        """g (float[N,1,4,4] x, float[C,1,1,1] w) => (float[N,C,4,4] y) <float c = {1}> {
            a = Conv(x, w)\n y = Add(a, c) }""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    reason, text = REFUSED[case]
    if "ReduceMax" in text:
        text = text.replace("(float[N,2,4,4] y)", "(float y)").replace("ReduceMax", "ReduceMax<keepdims = 0>")
    assert_refused(RULE, reason, text)


@refuses(RULE, 5)
def test_a_bias_that_overflows() -> None:
    # float16 is written by its bits: 1.0 and 60000
    text = """g (float16[N,1,2,2] x) => (float16[N,1,2,2] y)
    <float16[1,1,1,1] w = {15360}, float16[1] b = {31571}, float16 c = {31571}> {
        a = Conv(x, w, b)\n d = Add(a, c)\n y = Sigmoid(d)
    }"""
    assert_refused(RULE, "overflow", text)


def test_a_convolution_outside_the_branch() -> None:
    text = f"""g (float[N,1,4,4] x, bool f) => (float[N,2,4,4] y) <{W}, float c = {{1}}> {{
        a = Conv(x, w)
        y = If(f) <then_branch = t () => (float[N,2,4,4] p) {{ p = Add(a, c) }},
                   else_branch = e () => (float[N,2,4,4] q) {{ q = Neg(x) }}>
    }}"""
    assert_left_alone(RULE, text.replace("Neg(x)", "Concat<axis = 1>(x, x)"))
