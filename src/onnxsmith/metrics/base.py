"""What a metric is: one number for how far two arrays are apart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Metric(ABC):
    """One measure. It gets float64 arrays of one shape, at least one element, finite in the same places."""

    title: ClassVar[str]

    @abstractmethod
    def measure(self, reference: Floats, candidate: Floats) -> float:
        """The distance; 0 for equal arrays, larger is worse."""


def widen(array: npt.NDArray[Any]) -> Floats:
    """Any numeric array as float64; complex numbers as pairs in a last axis. Exact for every float up to 64 bits."""
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return array.astype(np.float64)
