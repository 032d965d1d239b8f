"""fuse/pad-max-pool: what can never be the largest."""

from __future__ import annotations

import pytest

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
    "what may be negative": ("could be the largest", f"a = Pad(x, p)\n y = {POOL}"),
    "the least of a LeakyRelu": ("could be the largest", f"r = LeakyRelu(x)\n a = Pad(r, p)\n y = {POOL}"),
    "a Clip from below zero": ("could be the largest", f"r = Clip(x, low, six)\n a = Pad(r, p)\n y = {POOL}"),
    "a low number": ("could be the largest", f"a = Pad(x, p, low)\n y = {POOL}"),
    "padding of its own": ("pads too", f"{RELU}y = {OWN}"),
    "rounding up": ("beyond the data", f"{RELU}y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(a)"),
    "holes": ("holes", f"{RELU}y = MaxPool<kernel_shape = [2, 3], dilations = [2, 2]>(a)"),
    "wider than the window": ("as wide as the window", f"{RELU}y = MaxPool<kernel_shape = [3, 2]>(a)"),
    "places": (
        "count the padding",
        f"{RELU}m, i = MaxPool<kernel_shape = [3, 3]>(a)\n f = Cast<to = 1>(i)\n y = Add(m, f)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    reason, body = REFUSED[case]
    text = f"{HEAD} <{P}, float low = {{-3e38}}, float six = {{6}}> {{ {body} }}"
    assert_refused(RULE, reason, text)
