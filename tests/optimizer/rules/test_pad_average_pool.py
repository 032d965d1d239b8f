"""fuse/pad-average-pool: what the divisor counts."""

from __future__ import annotations

import pytest

from tests.refusals import refusals, refuses
from tests.rewrites import assert_refused, assert_rewritten

RULE = "fuse/pad-average-pool"
HEAD = "g (float[N,1,4,5] x) => (float[N,1,H,V] y)"
P = "int64[8] p = {0, 0, 1, 2, 0, 0, 0, 1}"

REWRITTEN = {
    "no padding of its own": "kernel_shape = [3, 3]",
    "padding that counts": "kernel_shape = [3, 4], pads = [1, 1, 2, 1], count_include_pad = 1",
    "strides": "kernel_shape = [2, 3], strides = [2, 2]",
    "padding by itself that counts": 'kernel_shape = [3, 4], auto_pad = "SAME_UPPER", count_include_pad = 1',
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    # the reference evaluator counts wrongly where both sides of an axis differ
    text = f"{HEAD} <{P}> {{ a = Pad(x, p)\n y = AveragePool<{REWRITTEN[case]}>(a) }}"
    assert_rewritten(RULE, "AveragePool", text, runtime="onnxruntime")


REFUSED = {
    "5: padding that does not count": ("does not count", "kernel_shape = [4, 5], pads = [1, 1, 1, 1]"),
    "6: rounding up": ("beyond the data", "kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1"),
    "7: wider than the window": ("as wide as the window", "kernel_shape = [3, 2]"),
    "9: padding that depends on the size": (
        "depend on the size",
        'kernel_shape = [4, 5], strides = [2, 2], auto_pad = "SAME_UPPER", count_include_pad = 1',
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    reason, how = REFUSED[case]
    assert_refused(RULE, reason, f"{HEAD} <{P}> {{ a = Pad(x, p)\n y = AveragePool<{how}>(a) }}")


@refuses(RULE, 1)
def test_ones() -> None:
    text = f"{HEAD} <{P}, float v = {{1}}> {{ a = Pad(x, p, v)\n y = AveragePool<kernel_shape = [3, 3]>(a) }}"
    assert_refused(RULE, "not pad with zero", text)


@refuses(RULE, 8)
def test_holes() -> None:
    text = f"{HEAD} <{P}> {{ a = Pad(x, p)\n y = AveragePool<kernel_shape = [2, 3], dilations = [2, 2]>(a) }}"
    assert_refused(RULE, "holes", text, opset=19)


PADDED = {
    "1: a mirror": ("not pad with a constant", "", P, 'Pad<mode = "reflect">(x, p)'),
    "2: channels": ("channels are also padded", "", P.replace("0, 0, 1", "0, 1, 1", 1), "Pad(x, p)"),
    "3: cropping": ("it crops", "", P.replace("0, 1}", "0, -1}"), "Pad(x, p)"),
    "4: amounts from outside": ("amounts of padding", ", int64[8] p", P, "Pad(x, p)"),
    "4: a value from outside": ("not a constant number", ", float v", f"{P}, float v = {{0}}", "Pad(x, p, v)"),
}


@pytest.mark.parametrize("case", refusals(RULE, PADDED))
def test_pads_that_are_refused(case: str) -> None:
    reason, more, constants, pad = PADDED[case]
    head = HEAD.replace("x)", f"x{more})", 1).replace("float[N,1,H,V] y", "float[N,C,H,V] y")
    runtime = "onnxruntime" if "crop" in case else "reference"  # which cannot crop
    text = f"{head} <{constants}> {{ a = {pad}\n y = AveragePool<kernel_shape = [3, 3]>(a) }}"
    assert_refused(RULE, reason, text, runtime=runtime)


@refuses(RULE, 4)
def test_axes_from_outside() -> None:
    text = f"""{HEAD.replace("x)", "x, int64[2] axes)")} <int64[4] q = {{1, 2, 0, 1}}, int64[2] axes = {{2, 3}}> {{
        a = Pad(x, q, , axes)\n y = AveragePool<kernel_shape = [3, 3]>(a) }}"""
    assert_refused(RULE, "padded axes", text, opset=18)


@refuses(RULE, 10)
def test_before_pools_could_count_what_they_pad() -> None:
    text = f"""{HEAD} {{
        a = Pad<pads = [0, 0, 1, 2, 0, 0, 0, 1]>(x)\n y = AveragePool<kernel_shape = [3, 3]>(a) }}"""
    assert_refused(RULE, "before opset 7", text, opset=6)
