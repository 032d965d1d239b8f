"""fuse/pad-average-pool: what the divisor counts."""

from __future__ import annotations

import pytest

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
    "padding that does not count": ("does not count", "kernel_shape = [3, 3], pads = [1, 1, 1, 1]"),
    "rounding up": ("beyond the data", "kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1"),
    "wider than the window": ("as wide as the window", "kernel_shape = [3, 2]"),
    "padding that depends on the size": (
        "depends on the size",
        'kernel_shape = [3, 3], strides = [2, 2], auto_pad = "SAME_UPPER"',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    reason, how = REFUSED[case]
    assert_refused(RULE, reason, f"{HEAD} <{P}> {{ a = Pad(x, p)\n y = AveragePool<{how}>(a) }}")


def test_ones() -> None:
    text = f"{HEAD} <{P}, float v = {{1}}> {{ a = Pad(x, p, v)\n y = AveragePool<kernel_shape = [3, 3]>(a) }}"
    assert_refused(RULE, "not pad with zero", text)


def test_holes() -> None:
    text = f"{HEAD} <{P}> {{ a = Pad(x, p)\n y = AveragePool<kernel_shape = [2, 3], dilations = [2, 2]>(a) }}"
    assert_refused(RULE, "holes", text, opset=19)
