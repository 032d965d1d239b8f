"""What a metric is: one number for how far two arrays are apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from onnxsmith import rooms

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


class Metric(ABC):
    """One measure. Members of this room are found by their files."""

    title: ClassVar[str]
    unit: ClassVar[str] = ""
    better: ClassVar[Literal["lower", "higher"]] = "lower"
    """In which direction two arrays are closer."""
    equal: ClassVar[float] = 0.0
    """The measure of equal arrays: the best there is."""

    def applies(self, reference: Array) -> bool:
        """Whether it says something of arrays of this dtype and shape."""
        return reference.size > 0 and is_numeric(reference)

    @abstractmethod
    def measure(self, reference: Array, candidate: Array) -> float:
        """The measure of two arrays of one shape, in their own dtype, to which it applies.

        Elements that are NaN or infinite on either side are left out: whether they may be there is another question.
        NaN when nothing is left to measure.
        """

    def is_worse(self, measure: float, than: float) -> bool:
        """Whether a measure says that two arrays are further apart than another does. NaN, nothing measured, is not."""
        return measure > than if self.better == "lower" else measure < than


@cache
def members() -> dict[str, Metric]:
    """Every metric, by id."""
    return rooms.members("onnxsmith.metrics", Metric)


def measures(reference: Array, candidate: Array) -> dict[str, float]:
    """What every metric that applies says of two arrays of one shape, by its id."""
    return {
        name: metric.measure(reference, candidate) for name, metric in members().items() if metric.applies(reference)
    }


def is_numeric(array: Array) -> bool:
    """Whether it holds numbers: floats of every width, integers, complex numbers, bools; no strings."""
    return array.dtype.kind in "fciub" or (array.dtype.kind == "V" and array.dtype.names is None)


def widen(array: Array) -> Floats:
    """Any numeric array as float64; complex numbers as pairs in a last axis. Exact for every float up to 64 bits."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return array.astype(np.float64, copy=False)


_BLOCK = 2**15


def blocks(*arrays: Array) -> Iterator[tuple[Floats, ...]]:
    """Arrays of one size, flattened and as float64, a piece that fits into a cache at a time: what is computed of a
    large tensor needs no copies of its size."""
    flat = [array.reshape(-1) for array in arrays]
    for start in range(0, flat[0].size, _BLOCK):
        yield tuple(widen(array[start : start + _BLOCK]) for array in flat)


def finite(reference: Array, candidate: Array) -> tuple[Floats, Floats]:
    """The elements that are finite on both sides, as float64, in one dimension."""
    a, b = widen(reference), widen(candidate)
    both = np.isfinite(a) & np.isfinite(b)
    return (a.reshape(-1), b.reshape(-1)) if both.all() else (a[both], b[both])


def scaled(a: Floats, b: Floats) -> tuple[Floats, Floats, float]:
    """Both over the largest magnitude in either, and that: for ratios, so that no square overflows or vanishes."""
    peak = max(float(np.max(np.abs(a))), float(np.max(np.abs(b))))
    return (a / peak, b / peak, peak) if peak else (a, b, 1.0)
