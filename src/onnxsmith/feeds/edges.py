"""Makes values at which a model may go another way: where it rounds, compares, or hardly anything comes in.

Values that are drawn from a wide spread are hardly ever halves, never equal to a threshold, and never small for long. A
wrong rounding mode, a `<` for a `<=`, a floor under a logarithm show at such values alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.feeds import trees
from onnxsmith.feeds.readers import Owners, constant, readers
from onnxsmith.model.graph import walk

Array = npt.NDArray[Any]
_COMPARES = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "ThresholdedRelu", "Hardmax", "Binarizer"}
_MOST = 4096
_HALVES = np.arange(-9, 10) / 2
_QUIET = 1e-4
_CLOSE = 0.02
_EMPTY_ROWS = 0.2
"""The share of rows that are zero."""
_OF_32_BITS = 2**31
_BEYOND = 2**24 + 1
"""The first integer that float32 does not hold."""


def thresholds(model: ir.Model) -> tuple[float, ...]:
    """The numbers that a graph compares floats with: small constants of comparisons, the splits of trees."""
    found: dict[float, None] = {}
    for node in walk.all_nodes(model):
        if node.op_type in _COMPARES:
            for value in node.inputs:
                held = constant(value) if value is not None else None
                if held is not None and held.size <= 64:
                    found |= dict.fromkeys(float(number) for number in held.ravel() if np.isfinite(number))
        if node.op_type in trees.KINDS:
            found |= dict.fromkeys(trees.thresholds(node)[:_MOST])
        if len(found) >= _MOST:
            break
    return tuple(found)[:_MOST]


def compared(value: ir.Value, inside: Owners | None = None) -> tuple[float, ...]:
    """The numbers that the values of a float input are themselves compared with: an age with a limit."""
    found: dict[float, None] = {}
    for reader in readers(value, inside):
        if reader.node.op_type not in _COMPARES or reader.gain != 1 or reader.shift or len(reader.node.inputs) != 2:
            continue
        held = constant(reader.node.inputs[1 - reader.index])
        if held is not None and held.size <= 64:
            found |= dict.fromkeys(float(number) for number in held if np.isfinite(number) and number)
    return tuple(found)


def may_lack(value: ir.Value, inside: Owners | None = None) -> bool:
    """Whether the graph puts something in the place of missing values of a float input."""
    return any(reader.node.op_type == "Imputer" for reader in readers(value, inside))


def around(drawn: Array, limits: Sequence[float], rng: np.random.Generator) -> Array:
    """The drawn numbers, every other one moved to one of the limits: as many come to lie on either side of it, half of
    them so close that a limit which is a few per cent off shows."""
    chosen = rng.choice(np.asarray(limits, np.float64), drawn.shape)
    spread = np.where(rng.random(drawn.shape) < 0.5, np.maximum(1.0, np.abs(chosen) / 4), _CLOSE * np.abs(chosen))
    return np.where(rng.random(drawn.shape) < 0.5, chosen + drawn * spread, drawn)


def floats(shape: tuple[int, ...], rng: np.random.Generator, compared: Sequence[float]) -> Array:
    """One part small, one of halves and of the numbers in `compared`, one of odd whole numbers, each in one piece; some
    rows of zeros, as of what has no neighbour, no word, no ink."""
    size = int(np.prod(shape))
    first, second = size // 3, 2 * size // 3
    pool = np.concatenate([_HALVES, np.asarray(compared, np.float64)])
    ties = np.where(rng.random(size) < 0.5, rng.choice(_HALVES, size), rng.choice(pool, size))
    whole = 2.0 * rng.integers(-8, 8, size) + 1
    made = np.concatenate([_QUIET * rng.standard_normal(first), ties[first:second], whole[second:]]).reshape(shape)
    if len(shape) > 1 and math.prod(shape[:-1]) > 1:
        made[rng.random(shape[:-1]) < _EMPTY_ROWS] = 0
    return made


def integers(shape: tuple[int, ...], rng: np.random.Generator, dtype: np.dtype[Any]) -> Array:
    """Small numbers of both signs, and where the dtype holds them some that float32 does not, or 32 bits do not."""
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -9), min(limits.max, 9)
    drawn = rng.integers(low, high + 1, shape)
    if limits.max < 2 * _BEYOND:
        return np.asarray(drawn)
    beyond = _BEYOND + 2 * rng.integers(0, 8, shape)
    if limits.max > 2 * _OF_32_BITS:
        beyond = np.where(rng.random(shape) < 0.5, _OF_32_BITS + beyond, beyond)
    return np.where(rng.random(shape) < 0.25, beyond, drawn)
