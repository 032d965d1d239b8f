"""Defines a metric: one number for the difference of two arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from onnxsmith.base import rooms

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class Metric(ABC):
    """Measures the difference of two arrays in one way. Metrics are found by walking this folder."""

    title: ClassVar[str]
    unit: ClassVar[str] = ""
    better: ClassVar[Literal["lower", "higher"]] = "lower"
    """Says whether a lower or a higher measure means closer arrays."""
    equal: ClassVar[float] = 0.0
    """Holds the measure of equal arrays, which is the best."""

    def applies(self, reference: Array) -> bool:
        """Whether the metric is meaningful for arrays of this dtype and shape."""
        return reference.size > 0 and is_numeric(reference)

    @abstractmethod
    def measure(self, reference: Array, candidate: Array) -> float:
        """Returns the measure of two arrays of one shape, in their own dtypes, for which `applies` is true.

        Elements that are NaN or infinite on either side are left out, because other code compares the places of such
        elements. Returns NaN if no element is left.
        """

    def is_worse(self, measure: float, than: float) -> bool:
        """Whether the first measure means a larger difference than the second. False for NaN, which says that nothing
        was measured."""
        return measure > than if self.better == "lower" else measure < than


@cache
def members() -> dict[str, Metric]:
    """Returns every metric, by id."""
    return rooms.members("onnxsmith.verification.metrics", Metric)


def measures(reference: Array, candidate: Array) -> dict[str, float]:
    """Returns the measures of two arrays of one shape, by metric id, for all metrics that apply."""
    return {
        name: metric.measure(reference, candidate) for name, metric in members().items() if metric.applies(reference)
    }


def is_numeric(array: Array) -> bool:
    """Whether the array holds numbers: floats of any width, integers, complex numbers, bools; not strings."""
    return array.dtype.kind in "fciub" or (array.dtype.kind == "V" and array.dtype.names is None)


def widen(array: Array) -> Floats:
    """Converts any numeric array to float64; complex numbers become pairs in a last axis. The conversion is exact for
    every float up to 64 bits."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return array.astype(np.float64, copy=False)


_BLOCK = 2**15
"""Counts the elements of a block. A choice: 256 KiB of float64 fit into a core's cache."""


def blocks(*arrays: Array) -> Iterator[tuple[Floats, ...]]:
    """Yields arrays of one size as flat float64 blocks that fit into a cache, so that a large tensor is processed
    without copies of its size."""
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, flat[0].size, _BLOCK):
        yield tuple(widen(array[start : start + _BLOCK]) for array in flat)


def finite(reference: Array, candidate: Array) -> tuple[Floats, Floats]:
    """Returns the elements that are finite on both sides, as flat float64 arrays."""
    a, b = widen(reference), widen(candidate)
    both = np.isfinite(a) & np.isfinite(b)
    return (a.reshape(-1), b.reshape(-1)) if both.all() else (a[both], b[both])


def scaled(a: Floats, b: Floats) -> tuple[Floats, Floats, float]:
    """Returns both arrays divided by their largest magnitude, and this magnitude. After the division, no square in a
    ratio over- or underflows."""
    peak = max(float(np.max(np.abs(a))), float(np.max(np.abs(b))))
    return (a / peak, b / peak, peak) if peak else (a, b, 1.0)
