"""Makes structured arrays: boxes with ordered corners, invertible matrices, ragged masks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Draw:
    """Draws the random numbers for structured arrays."""

    rng: np.random.Generator = field(repr=False)


def boxes(shape: tuple[int, ...], draw: Draw, extent: float) -> Array:
    """Draws corners x1, y1, x2, y2 inside `extent`, with sides above 0, along the last axis that has size 4. If no axis
    has size 4, draws numbers within the extent."""
    axis = next((axis for axis in reversed(range(len(shape))) if shape[axis] == 4), None)
    drawn = draw.rng.uniform(0, extent, shape)
    if axis is None:
        return np.asarray(drawn)
    rows = np.moveaxis(drawn, axis, -1)
    low = rows[..., :2] * 0.6
    side = extent * (0.05 + 0.3 * draw.rng.random(low.shape))
    return np.moveaxis(np.concatenate([low, low + side], axis=-1), -1, axis)


def matrices(shape: tuple[int, ...], draw: Draw) -> Array:
    """Draws matrices whose distance from the identity is at most a third in norm, so that none is ill-conditioned."""
    if len(shape) < 2:
        return np.asarray(draw.rng.standard_normal(shape))
    off = draw.rng.uniform(-1, 1, shape) / (3 * max(shape[-2:]))
    return np.asarray(np.eye(shape[-2], shape[-1]) + off)


def ragged(shape: tuple[int, ...], draw: Draw) -> Array:
    """Draws rows of ones followed by zeros, with at least one 1. This is padding at the end, which a causal model also
    accepts."""
    if not shape or not shape[-1]:
        return np.ones(shape, np.int64)
    lengths = draw.rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return np.asarray(np.arange(shape[-1]) < lengths).astype(np.int64)
