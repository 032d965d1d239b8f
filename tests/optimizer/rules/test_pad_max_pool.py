"""fuse/pad-max-pool: what can never be the largest."""

from __future__ import annotations

import pytest

from tests.refusals import refusals, refuses
from tests.rewrites import assert_refused, assert_rewritten

RULE = "fuse/pad-max-pool"
HEAD = "g (float[N,1,4,5] x) => (float[N,1,H,V] y)"
P = "int64[8] p = {0, 0, 1, 2, 0, 0, 0, 1}"
POOL = "MaxPool<kernel_shape = [3, 3]>(a)"
OWN = "MaxPool<kernel_shape = [3, 5], pads = [1, 1, 1, 1]>(a)"
RELU = "r = Relu(x)\n a = Pad(r, p)\n "

REWRITTEN = {
    "after Relu": ("Relu MaxPool", f"{RELU}y = {POOL}"),
    "after Relu and more": (
        "Relu Transpose MaxPool",
        f"r = Relu(x)\n t = Transpose<perm = [0, 1, 3, 2]>(r)\n a = Pad(t, p)\n y = {POOL}",
    ),
    "after Clip": ("Clip MaxPool", f"r = Clip(x, zero, six)\n a = Pad(r, p)\n y = {POOL}"),
    "strides": (
        "Sigmoid MaxPool",
        "r = Sigmoid(x)\n a = Pad(r, p)\n y = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(a)",
    ),
    "the least there is": ("MaxPool", f"a = Pad(x, p, least)\n y = {POOL}"),
    "the least and padding of its own": ("MaxPool", f"a = Pad(x, p, least)\n y = {OWN}"),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    ops, body = REWRITTEN[case]
    text = f"{HEAD} <{P}, float zero = {{0}}, float six = {{6}}, float least = {{-inf}}> {{ {body} }}"
    assert_rewritten(RULE, ops, text, runtime="onnxruntime")


REFUSED = {
    "1: what may be negative": ("could be the maximum", f"a = Pad(x, p)\n y = {POOL}"),
    "1: the least of a LeakyRelu": ("could be the maximum", f"r = LeakyRelu(x)\n a = Pad(r, p)\n y = {POOL}"),
    "1: a Clip from below zero": ("could be the maximum", f"r = Clip(x, low, six)\n a = Pad(r, p)\n y = {POOL}"),
    "1: a low number": ("could be the maximum", f"a = Pad(x, p, low)\n y = {POOL}"),
    "5: padding of its own": ("also pads", f"{RELU}y = {OWN}"),
    "6: rounding up": (
        "beyond the data",
        f"{RELU}y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(a)",
    ),
    "8: holes": ("holes", f"{RELU}y = MaxPool<kernel_shape = [2, 3], dilations = [2, 2]>(a)"),
    "7: wider than the window": ("as wide as the window", f"{RELU}y = MaxPool<kernel_shape = [3, 2]>(a)"),
    "9: places": (
        "change with the padding",
        f"{RELU}m, i = MaxPool<kernel_shape = [3, 3]>(a)\n f = Cast<to = 1>(i)\n y = Add(m, f)",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    reason, body = REFUSED[case]
    text = f"{HEAD} <{P}, float low = {{-3e38}}, float six = {{6}}> {{ {body} }}"
    assert_refused(RULE, reason, text)


PADDED = {
    "2: channels": ("channels are also padded", "", P.replace("0, 0, 1", "0, 1, 1", 1), "Pad(r, p)"),
    "2: a mirror": ("not pad with a constant", "", P, 'Pad<mode = "reflect">(r, p)'),
    "3: cropping": ("it crops", "", P.replace("0, 1}", "0, -1}"), "Pad(r, p)"),
    "4: amounts from outside": ("amounts of padding", ", int64[8] p", P, "Pad(r, p)"),
    "4: a value from outside": ("not a constant number", ", float v", f"{P}, float v = {{0}}", "Pad(r, p, v)"),
}


@pytest.mark.parametrize("case", refusals(RULE, PADDED))
def test_pads_that_are_refused(case: str) -> None:
    reason, more, constants, pad = PADDED[case]
    head = HEAD.replace("x)", f"x{more})", 1).replace("float[N,1,H,V] y", "float[N,C,H,V] y")
    runtime = "onnxruntime" if "crop" in case else "reference"  # which cannot crop
    assert_refused(RULE, reason, f"{head} <{constants}> {{ r = Relu(x)\n a = {pad}\n y = {POOL} }}", runtime=runtime)


@refuses(RULE, 10)
def test_padding_that_depends_on_the_size() -> None:
    pool = 'MaxPool<kernel_shape = [4, 5], strides = [2, 2], auto_pad = "SAME_UPPER">(a)'
    text = f"{HEAD} <{P}, float least = {{-inf}}> {{ a = Pad(x, p, least)\n y = {pool} }}"
    assert_refused(RULE, "depend on the size", text)
