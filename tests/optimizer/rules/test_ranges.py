"""Bounds of numbers, by the operators that make them."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.optimizer.rules._ranges import is_whole, largest, not_negative

CONSTANTS = "float two = {2}, float half = {0.5}, float m = {-3}, float six = {6}, float16 tiny = {1678}"  # 0.0001
INPUTS = "float[3] x, float[3] z, int8[3] i, uint8[3] u, int32[3] l, bool[3] b"


def made(text: str) -> ir.Value:
    model = from_text(f'<ir_version: 10, opset_import: ["": 20]>\ng ({INPUTS}) => (y) <{CONSTANTS}> {{ {text} }}')
    facts.spread_opsets(model)
    Inference(model)
    return model.graph.outputs[0]


RANGES = {
    "a sum": ("s = Sigmoid(x)\n t = Tanh(z)\n y = Add(s, t)", 2, False),
    "a difference": ("s = Sigmoid(x)\n t = Sigmoid(z)\n y = Sub(s, t)", 1, False),
    "a product": ("s = Sigmoid(x)\n t = Abs(z)\n y = Mul(s, t)", math.inf, True),
    "a number times": ("s = Tanh(x)\n y = Mul(s, m)", 3, False),
    "a choice": ("s = Sigmoid(x)\n y = Where(b, s, six)", 6, True),
    "small integers": ("y = Cast<to = 1>(i)", 128, False),
    "unsigned integers": ("y = Cast<to = 1>(u)", 256, True),
    "truth values": ("y = Cast<to = 1>(b)", 1, True),
    "limited": ("s = Sub(x, two)\n y = Clip(s, half, six)", 6, True),
    "limited twice": ("s = Relu(x)\n y = Min(s, six)", 6, True),
    "the opposite": ("s = Relu(x)\n t = Min(s, six)\n y = Neg(t)", 6, False),
    "either branch": (
        """c = ReduceMax<keepdims = 0>(l)\n k = Cast<to = 9>(c)
        y = If (k) <then_branch = t () => (float[3] p) { p = Sigmoid(x) },
                    else_branch = e () => (float[3] q) { q = Clip(z, half, six) }>""",
        6,
        True,
    ),
    "an infinity": ("h = Cast<to = 10>(l)\n y = Mul(h, tiny)", math.inf, False),
    "unknown": ("s = Sigmoid(x)\n y = Add(s, z)", math.inf, False),
}


@pytest.mark.parametrize("case", RANGES)
def test_ranges(case: str) -> None:
    text, bound, positive = RANGES[case]
    value = made(text)
    assert bound <= largest(value) <= bound * 1.02
    assert not_negative(value) is positive


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f = Cast<to = 1>(i)\n s = Add(f, two)\n t = Mul(s, m)\n y = Neg(t)", True),
        ("f = Cast<to = 1>(i)\n y = Mul(f, half)", False),
        ("f = Cast<to = 1>(i)\n y = Clip(f, m, six)", True),
        ("f = Cast<to = 1>(i)\n y = Clip(f, half, six)", False),
        ("y = Identity(x)", False),
    ],
)
def test_whole(text: str, expected: bool) -> None:
    assert is_whole(made(text)) is expected


def test_constants() -> None:
    value = made("y = Add(x, two)").producer().inputs[1]  # type: ignore[union-attr]
    assert value is not None
    assert (largest(value), not_negative(value), is_whole(value)) == (2, True, True)
    for array in (np.array(np.inf, np.float32), np.zeros(0, np.float32)):
        value.const_value = ir.tensor(array)
        assert (largest(value), is_whole(value)) == (math.inf, False)
