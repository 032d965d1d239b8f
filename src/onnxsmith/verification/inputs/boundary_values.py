"""Makes values at which a model may change its behaviour: where it rounds, where it compares, and near zero.

Values drawn from a wide spread are rarely halves, never equal to a threshold, and never small over a longer stretch.
Only such values show a wrong rounding mode, a `<` in place of a `<=`, or a floor under a logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.verification.inputs import tree_ensembles
from onnxsmith.verification.inputs.input_readers import Owners, constant, readers

Array = npt.NDArray[Any]
_COMPARES = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "ThresholdedRelu", "Hardmax", "Binarizer"}
_MOST = 4096
"""Limits the thresholds that are kept. A choice: more thresholds would not fit into an input of usual size."""
_HALVES = np.arange(-9, 10) / 2
_QUIET = 1e-4
"""Sets the scale of the small values. A choice: its square is below the usual epsilons of float32 models (1e-5)."""
_CLOSE = 0.02
"""Sets the relative distance of the values that lie close to a threshold. A choice: a threshold off by a few per cent
shows."""
_EMPTY_ROWS = 0.2
"""Sets the share of rows that are zero. A choice."""
_OF_32_BITS = 2**31
_BEYOND = 2**24 + 1
"""Holds the first integer that float32 cannot represent (24 bits of significand)."""


def thresholds(model: ir.Model) -> tuple[float, ...]:
    """Returns the numbers with which a graph compares floats: small constants of comparisons, and the splits of
    trees."""
    found: dict[float, None] = {}
    for node in walk.all_nodes(model):
        if node.op_type in _COMPARES:
            for value in node.inputs:
                held = constant(value) if value is not None else None
                if held is not None and held.size <= 64:
                    found |= dict.fromkeys(float(number) for number in held.ravel() if np.isfinite(number))
        if node.op_type in tree_ensembles.KINDS:
            found |= dict.fromkeys(tree_ensembles.thresholds(node)[:_MOST])
        if len(found) >= _MOST:
            break
    return tuple(found)[:_MOST]


def compared(value: ir.Value, inside: Owners | None = None) -> tuple[float, ...]:
    """Returns the numbers with which the values of a float input are compared directly: an age with a limit, for
    example."""
    found: dict[float, None] = {}
    for reader in readers(value, inside):
        if reader.node.op_type not in _COMPARES or reader.gain != 1 or reader.shift or len(reader.node.inputs) != 2:
            continue
        held = constant(reader.node.inputs[1 - reader.index])
        if held is not None and held.size <= 64:
            found |= dict.fromkeys(float(number) for number in held if np.isfinite(number) and number)
    return tuple(found)


def may_be_missing(value: ir.Value, inside: Owners | None = None) -> bool:
    """Whether the graph replaces missing values of a float input."""
    return any(reader.node.op_type == "Imputer" for reader in readers(value, inside))


def near_limits(drawn: Array, limits: Sequence[float], rng: np.random.Generator) -> Array:
    """Moves about half of the numbers to limits, as many above as below. Half of the moved numbers lie so close to the
    limit that a limit wrong by a few per cent shows."""
    chosen = rng.choice(np.asarray(limits, np.float64), drawn.shape)
    spread = np.where(rng.random(drawn.shape) < 0.5, np.maximum(1.0, np.abs(chosen) / 4), _CLOSE * np.abs(chosen))
    return np.where(rng.random(drawn.shape) < 0.5, chosen + drawn * spread, drawn)


def floats(shape: tuple[int, ...], rng: np.random.Generator, compared: Sequence[float]) -> Array:
    """Returns three pieces of equal size: small values; halves and numbers from `compared`; odd whole numbers. Some
    rows are zero, like the rows of a node without neighbours, an empty text or a blank line."""
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
    """Returns small numbers of both signs. If the dtype holds them, some numbers are beyond float32's integers or
    beyond 32 bits."""
    limits = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    low, high = max(limits.min, -9), min(limits.max, 9)
    drawn = rng.integers(low, high + 1, shape)
    if limits.max < 2 * _BEYOND:
        return np.asarray(drawn)
    beyond = _BEYOND + 2 * rng.integers(0, 8, shape)
    if limits.max > 2 * _OF_32_BITS:
        beyond = np.where(rng.random(shape) < 0.5, _OF_32_BITS + beyond, beyond)
    return np.where(rng.random(shape) < 0.25, beyond, drawn)
