"""Constants as one number for each channel."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.rules._fold_into_weights import per_channel, steps
from onnxsmith.optimizer.rules.base import NoMatch
from tests.rewrites import head


@pytest.mark.parametrize(
    ("shape", "rank", "axis", "is_one"),
    [
        ((), 4, 1, True),
        ((1,), 4, 1, True),
        ((3, 1, 1), 4, 1, True),
        ((1, 3, 1, 1), 4, 1, True),
        ((3,), 2, -1, True),
        ((3,), 4, 1, False),  # along the last axis
        ((2, 1, 1), 4, 1, False),  # two numbers for three channels
        ((2, 3, 1, 1), 4, 1, False),  # along another axis too
        ((1, 1, 3, 1, 1), 4, 1, False),  # raises the rank
        ((3,), 1, 1, False),  # there is no such axis
        ((3,), 1, -1, True),
        ((3,), 1, -2, False),
    ],
)
def test_a_constant_that_broadcasts_along_the_channels(
    shape: tuple[int, ...], rank: int, axis: int, is_one: bool
) -> None:
    values = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    found = per_channel(values, 3, rank, axis)
    assert (found is not None) == is_one
    if found is not None:
        assert found.dtype == np.float64
        assert found.tolist() == ([1, 2, 3] if values.size == 3 else [1, 1, 1])
    assert per_channel(values.astype(np.int64), 3, rank, axis) is None


@pytest.mark.parametrize(
    ("node", "opset", "scale", "shift"),
    [
        ("y = Mul(x, c)", 20, 4, 0),
        ("y = Mul(c, x)", 20, 4, 0),
        ("y = Div(x, c)", 20, 0.25, 0),
        ("y = Div(c, x)", 20, None, None),
        ("y = Add(c, x)", 20, 1, 4),
        ("y = Sub(x, c)", 20, 1, -4),
        ("y = Sub(c, x)", 20, None, None),
        ("y = Neg(x)", 20, -1, 0),
        ("y = Neg(x)", 6, None, None),
        ("y = Mul(x, x)", 20, None, None),
        ("y = Abs(x)", 20, None, None),
    ],
)
def test_an_operator_as_a_factor_and_a_summand(node: str, opset: int, scale: float | None, shift: float | None) -> None:
    model = from_text(head(opset) + f"g (float[2] x) => (float[2] y) <float c = {{4}}> {{ {node} }}")
    found = [step for _, step in steps(model.graph.node(0)) if not isinstance(step, NoMatch)]
    assert [(float(step.scale), float(step.shift)) for step in found] == ([] if scale is None else [(scale, shift)])


NORM = "y = BatchNormalization{}(x, s, b, m, v)"


@pytest.mark.parametrize(
    ("node", "opset", "why"),
    [
        (NORM.format("<epsilon = 1.0>"), 20, ""),
        (NORM.format("<epsilon = 1.0, training_mode = 0>"), 20, ""),
        (NORM.format("<epsilon = 1.0, training_mode = 1>"), 20, "training mode"),
        (NORM.format("<epsilon = 1.0, spatial = 1>"), 8, ""),
        (NORM.format("<epsilon = 1.0, spatial = 0>"), 8, "each position"),
        (NORM.format("<epsilon = 1.0>").replace("m, v", "k, v"), 20, "mean is not a constant"),
    ],
)
def test_a_normalisation_as_a_factor_and_a_summand(node: str, opset: int, why: str) -> None:
    text = f"""g (float[n,1] x, float[1] k) => (float[n,1] y)
        <float[1] s = {{6}}, float[1] b = {{5}}, float[1] m = {{2}}, float[1] v = {{8}}> {{ {node} }}"""
    ((_, step),) = steps(from_text(head(opset) + text).graph.node(0))
    if isinstance(step, NoMatch):
        assert why
        assert why in step.reason
        assert isinstance(step.where, ir.Node)
    else:
        assert not why
        assert (step.scale.tolist(), step.shift.tolist()) == ([2], [1])  # 6 / sqrt(8 + 1), and 5 - 2 * 2
