"""A constant seen as one number for each channel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def per_channel(array: npt.NDArray[Any], channels: int, rank: int) -> npt.NDArray[np.float64] | None:
    """The `channels` numbers, in float64, that broadcast along axis 1 of a tensor of that rank; None where the constant
    varies along other axes, raises the rank, or has another number of them."""
    if array.ndim > rank or array.dtype.kind != "f":
        return None
    full = (1,) * (rank - array.ndim) + array.shape
    if full[0] != 1 or full[1] not in (1, channels) or any(size != 1 for size in full[2:]):
        return None
    return np.broadcast_to(array.astype(np.float64).ravel(), (channels,))
