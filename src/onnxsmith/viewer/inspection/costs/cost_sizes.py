"""Holds the sizes at which symbolic costs become numbers: given sizes, and example sizes for all other symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from onnxsmith.graph.shapes import dims
from onnxsmith.viewer.inspection.costs.trip_counts import UNKNOWN
from onnxsmith.viewer.inspection.mac_rules.base import Dim

_BATCH, _OTHER = 1, 64
"""Sets the example sizes: 1 for batches and unknown numbers of runs, 64 for other dimensions. A choice: one sample, one
run; 64 suits images and sequences, and many networks need a multiple of 32."""


class Sizes:
    """Holds sizes of symbols. A symbol without a given size gets an example size when it is first met.

    A dimension that cannot be computed, such as `Broadcast(a, b)` with different sizes, is treated as a symbol.
    """

    def __init__(self, given: Mapping[str, int], batches: Set[str]) -> None:
        self._given, self._batches = dict(given), batches
        self._values: dict[str, int] = {}
        self._of_dims: dict[str, int] = {}

    def value(self, dim: Dim) -> int:
        """Returns the size of a dimension, 0 or more."""
        if isinstance(dim, int):
            return dim
        found = self._of_dims.get(dim)
        if found is None:
            found = self._of_dims[dim] = self._value(dim)
        return found

    def product(self, factors: Iterable[Dim]) -> int:
        """Returns the product of dimensions."""
        number = 1
        for dim in factors:
            number *= self.value(dim)
        return number

    def used(self) -> dict[str, int]:
        """Returns the sizes of the symbols that were met."""
        return dict(self._values)

    def unused(self) -> list[str]:
        """Returns the given names that no dimension has."""
        return [name for name in self._given if name not in self._values]

    def examples(self) -> list[str]:
        """Returns the symbols that were met and have an example size."""
        return [name for name in self._values if name not in self._given]

    def _value(self, dim: str) -> int:
        names = () if dim in self._given else dims.names_in(dim)
        sizes = {name: self._size(name) for name in names}
        found = dims.evaluate(dim, sizes) if names else None
        if found is None:
            return self._noted(dim)
        self._values |= sizes
        return found

    def _noted(self, name: str) -> int:
        return self._values.setdefault(name, self._size(name))

    def _size(self, name: str) -> int:
        is_one = name in self._batches or "batch" in name.lower() or name.startswith(UNKNOWN)
        return self._given.get(name, _BATCH if is_one else _OTHER)
