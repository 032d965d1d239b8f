"""Reads constants as numbers for each channel, and operators that scale and shift channels by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer, two_ways
from onnxsmith.optimizer.rules.base import NoMatch

Vector = npt.NDArray[np.float64]
"""A number for each channel."""


@dataclass(frozen=True)
class Step:
    """source * scale + shift by constants, in float64. With `by_channel`, the constants have one number per channel of
    axis 1, and are not broadcast."""

    source: ir.Value
    scale: npt.NDArray[np.float64]
    shift: npt.NDArray[np.float64]
    by_channel: bool = False

    def vectors(self, channels: int, rank: int, axis: int) -> tuple[Vector, Vector] | None:
        """Returns scale and shift for each of the `channels` along an axis (1 or -1) of a tensor of this rank. Returns
        None if they vary along other axes, raise the rank, or have another number of channels."""
        pair = [self.scale, self.shift]
        if self.by_channel:
            pair = [array.reshape(-1, *[1] * (rank - 2)) for array in pair]
        found = [per_channel(array, channels, rank, axis) for array in pair]
        return None if found[0] is None or found[1] is None else (found[0], found[1])


def per_channel(array: npt.NDArray[Any], channels: int, rank: int, axis: int) -> Vector | None:
    """Returns the constant as `channels` numbers in float64, one for each channel along an axis of a tensor of this
    rank. Returns None if it varies along other axes, raises the rank, or has another number of channels."""
    if array.ndim > rank or array.dtype.kind != "f" or not -rank <= axis < rank:
        return None
    full = (1,) * (rank - array.ndim) + array.shape
    if any(size != 1 for place, size in enumerate(full) if place != axis % rank) or full[axis] not in (1, channels):
        return None
    return np.broadcast_to(array.astype(np.float64).ravel(), (channels,))


def steps(node: ir.Node) -> Iterator[tuple[ir.Value, Step | NoMatch]]:
    """Yields the ways to read a Mul, Div, Add, Sub, Neg or BatchNormalization as a step, each with the value that a
    refusal names. Yields nothing before opset 7, where attributes controlled broadcasting and training mode."""
    if facts.opset(node) < 7 or node.inputs[0] is None:
        return
    if node.op_type == "BatchNormalization":
        yield node.inputs[0], _normalisation(node, node.inputs[0])
    elif node.op_type == "Neg":
        if node.inputs[0].dtype is not None and node.inputs[0].dtype.is_floating_point():
            yield node.outputs[0], Step(node.inputs[0], -np.ones(()), np.zeros(()))
    elif node.op_type in ("Mul", "Div", "Add", "Sub"):
        for value, other in two_ways(node) if node.op_type in ("Mul", "Add") else two_ways(node)[:1]:
            array = facts.constant(other)
            if array is not None and array.dtype.kind == "f":
                yield other, _arithmetic(node.op_type, value, array.astype(np.float64))


def _arithmetic(op_type: str, source: ir.Value, number: npt.NDArray[np.float64]) -> Step:
    if op_type in ("Add", "Sub"):
        return Step(source, np.ones(()), number if op_type == "Add" else -number)
    with np.errstate(divide="ignore"):
        return Step(source, number if op_type == "Mul" else 1 / number, np.zeros(()))


def _normalisation(node: ir.Node, source: ir.Value) -> Step | NoMatch:
    if integer(node, "training_mode", 0) != 0 or len(node.outputs) > 1:
        return NoMatch("the normalisation is in training mode", node)
    if integer(node, "spatial", 1) != 1:
        return NoMatch("it normalises each position by itself", node)
    found: dict[str, npt.NDArray[np.float64]] = {}
    for name, value in zip(("scale", "shift", "mean", "variance"), node.inputs[1:], strict=False):
        array = facts.constant(value)
        if array is None or array.dtype.kind != "f" or array.ndim != 1:
            return NoMatch(f"{name} is not a constant", node)
        found[name] = array.astype(np.float64)
    epsilon = node.attributes.get("epsilon")
    if epsilon is not None and epsilon.is_ref():
        return NoMatch("it takes epsilon from its function", node)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = found["scale"] / np.sqrt(found["variance"] + (epsilon.as_float() if epsilon else 1e-5))
        return Step(source, scale, found["shift"] - found["mean"] * scale, by_channel=True)
