"""Computes statistics of a tensor: range, mean, spread, and counts of NaN, infinity and zero.

A tensor is read in pieces, so that a large one is never copied whole. Pieces are merged as in T. F. Chan, G. H. Golub,
R. J. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979): this avoids the
cancellation that a sum of squares has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.report.parts.item_views import Statistics
from onnxsmith.graph.reading.exact_text import flat

_PIECE = 1 << 18
"""Sets the elements in one piece. A choice: 2 MiB as float64."""


def statistics(tensor: ir.TensorProtocol) -> Statistics | None:
    """Returns the statistics of a tensor of any dtype and shape; None for strings.

    Unmaps the file of external data afterwards if it was not mapped before.

    Raises:
        OSError, ValueError: when the values cannot be read.
    """
    if tensor.dtype == ir.DataType.STRING:
        return None
    mapped_here = isinstance(tensor, ir.ExternalTensor) and tensor.raw is None
    found = _statistics(tensor)
    if mapped_here and isinstance(tensor, ir.ExternalTensor):
        tensor.release()
    return found


def _statistics(tensor: ir.TensorProtocol) -> Statistics:
    elements, running = flat(tensor), _Running()
    with np.errstate(all="ignore"):
        for start in range(0, elements.size, _PIECE):
            running.add(_comparable(elements[start : start + _PIECE], tensor.dtype))
    return running.result()


def _comparable(piece: npt.NDArray[Any], dtype: ir.DataType) -> npt.NDArray[Any]:
    """Converts the piece to a dtype that numpy can compute with; every value stays exact."""
    if dtype.is_floating_point():
        return piece.astype(np.float64)
    if dtype.is_integer() and dtype.bitwidth < 64:
        return piece.astype(np.int64)
    if dtype == ir.DataType.BOOL:
        return piece.astype(np.int64)
    return piece


@dataclass
class _Running:
    """Merges the statistics of pieces."""

    count: int = 0
    low: int | float | None = None
    high: int | float | None = None
    mean: float = 0.0
    squares: float = 0.0
    nan: int = 0
    inf: int = 0
    zero: int = 0

    def add(self, piece: npt.NDArray[Any]) -> None:
        self.zero += int(np.count_nonzero(piece == 0))
        if piece.dtype.kind in "fc":
            self.nan += int(np.count_nonzero(np.isnan(piece)))
            self.inf += int(np.count_nonzero(np.isinf(piece) & ~np.isnan(piece)))
            piece = piece[np.isfinite(piece)]
        if piece.dtype.kind == "c":
            piece = np.abs(piece)
        if not piece.size:
            return
        low, high = piece.min().item(), piece.max().item()
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        self._merge(piece.astype(np.float64))

    def _merge(self, piece: npt.NDArray[np.float64]) -> None:
        mean = float(piece.mean())
        squares = float(np.square(piece - mean).sum())
        total = self.count + piece.size
        step = mean - self.mean
        self.squares += squares + step * step * self.count * piece.size / total
        self.mean += step * piece.size / total
        self.count = total

    def result(self) -> Statistics:
        mean = self.mean if self.count and math.isfinite(self.mean) else None
        spread = math.sqrt(self.squares / self.count) if mean is not None and math.isfinite(self.squares) else None
        return Statistics(self.low, self.high, mean, spread, self.nan, self.inf, self.zero)
