"""Makes rows that reach the leaves of tree ensembles, and rows that lie at their splits.

Random rows hardly ever reach a leaf deep in a tree, and their features hardly ever equal a threshold. So one row is
drawn for each leaf, inside the intervals on the path to it, and three rows for each split: at the threshold, just below
and just above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxsmith.verification.inputs.tree_ensembles import Box, Ensemble

LEAVES, SPLITS = "leaves", "splits"
_FEWEST, _MOST = 64, 512
"""Bounds the number of rows. A choice."""
_EQUAL, _BELOW, _ABOVE = 0, -1, 1
_MISSING = 0.1
"""Sets the share of missing features, in half of the rows. A choice."""

Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Makes the rows for some ensembles. `kinds` are the possible kinds of rows. There are no rows at splits if all
    features are computed from the input, because rounding would move the rows off the threshold."""

    ensembles: tuple[Ensemble, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Lists the kinds of rows."""
        exact = any(column.exact for one in self.ensembles for column in one.columns.values())
        return (LEAVES, SPLITS) if exact else (LEAVES,) if self.ensembles else ()

    @property
    def names(self) -> frozenset[str]:
        """Names the inputs that hold features."""
        return frozenset(column.name for one in self.ensembles for column in one.columns.values())

    def renamed(self, names: Mapping[str, str]) -> Table:
        """Returns the same table for renamed inputs; `names` maps old names to new names."""
        return Table(
            tuple(
                replace(one, columns={f: replace(c, name=names.get(c.name, c.name)) for f, c in one.columns.items()})
                for one in self.ensembles
            )
        )

    def wanted(self, kind: str) -> int:
        """Returns the number of rows that reach every leaf or split, within limits."""
        count = sum(len(one.leaves) if kind == LEAVES else 3 * len(one.splits) for one in self.ensembles)
        return min(max(count, _FEWEST), _MOST)

    def put(self, values: dict[str, Any], kind: str, part: int, seed: int) -> None:
        """Replaces values of the inputs by rows; `part` selects a batch of rows if not all fit."""
        tables = {name: np.array(values[name]) for name in self.names if _is_table(values.get(name))}
        count = min((len(table) for table in tables.values()), default=0)
        for number, ensemble in enumerate(self.ensembles if count else ()):
            dtypes = {f: tables[c.name].dtype for f, c in ensemble.columns.items() if c.name in tables}
            made = _Maker(ensemble, dtypes, seed + number).rows(kind, count, part)
            for feature, column in ensemble.columns.items():
                table = tables.get(column.name)
                if table is not None and column.index < table.shape[1]:
                    table[:count, column.index] = _fitting(column.before(made[feature]), table.dtype)
        values.update(tables)


def _is_table(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiu"


def _fitting(numbers: Rows, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if dtype.kind == "f":
        return numbers.astype(dtype)
    limits = np.iinfo(dtype)
    # Beyond 2^53 float64 has no exact integers, and the cast back could overflow.
    return np.clip(numbers, max(limits.min, -(2**53)), min(limits.max, 2**53)).astype(dtype)


class _Maker:
    """Draws the features of one ensemble."""

    def __init__(self, ensemble: Ensemble, dtypes: Mapping[int, np.dtype[Any]], seed: int) -> None:
        self._ensemble, self._dtypes, self._seed = ensemble, dtypes, seed
        found: dict[int, set[float]] = {feature: set() for feature in ensemble.columns}
        for split in ensemble.splits:
            if split.feature in found and np.isfinite(split.threshold):
                found[split.feature].add(split.threshold)
        self._thresholds = {feature: np.array(sorted(held)) for feature, held in found.items()}

    def rows(self, kind: str, count: int, part: int) -> dict[int, Rows]:
        """Draws `count` numbers for each feature."""
        rng = np.random.default_rng([self._seed, part])
        made = {feature: self._anywhere(feature, count, rng) for feature in self._thresholds}
        if kind == LEAVES:
            for row, place in enumerate(self._order(len(self._ensemble.leaves), count, part)):
                self._enter(made, row, self._ensemble.leaves[place], rng)
            if self._ensemble.misses:
                self._miss(made, count, rng)
            return made
        splits = self._ensemble.splits
        equal = self._order(len(splits), -(-count // 3), part)
        near = self._order(2 * len(splits), count - len(equal), part) if splits else []
        sides = [(place, _EQUAL) for place in equal] + [(at // 2, (_BELOW, _ABOVE)[at % 2]) for at in near]
        for row, (place, side) in enumerate(sides):
            split = splits[place]
            self._enter(made, row, split.box, rng)
            column = self._ensemble.columns.get(split.feature)
            if column is not None and column.exact and split.feature in made:
                made[split.feature][row] = self._beside(split.threshold, side, split.feature)
        return made

    def _order(self, many: int, count: int, part: int) -> Sequence[int]:
        """Returns the next `count` of `many` places in random order. Each place comes once before any place is
        repeated."""
        if not many:
            return []
        order = np.random.default_rng(self._seed).permutation(many)
        return [int(order[(part * count + place) % many]) for place in range(count)]

    def _anywhere(self, feature: int, count: int, rng: np.random.Generator) -> Rows:
        """Draws random numbers, equally many between any two neighbouring thresholds."""
        held = self._thresholds[feature]
        if not held.size:
            return rng.standard_normal(count)
        reach = self._reach(feature)
        ends = np.concatenate([[held[0] - reach], held, [held[-1] + reach]])
        gap = rng.integers(0, len(held) + 1, count)
        return self._whole(
            ends[gap], ends[gap + 1], ends[gap] + (ends[gap + 1] - ends[gap]) * _inner(rng, count), feature
        )

    def _enter(self, made: dict[int, Rows], row: int, box: Box, rng: np.random.Generator) -> None:
        """Moves a row into a box."""
        for feature, (low, high) in box.items():
            if feature not in made:
                continue
            held, reach = self._thresholds[feature], self._reach(feature)
            low = min(float(held[0]), high) - reach if np.isinf(low) else low
            high = max(float(held[-1]), low) + reach if np.isinf(high) else high
            drawn = low + (high - low) * _inner(rng, 1)
            made[feature][row] = self._whole(np.array([low]), np.array([high]), drawn, feature)[0]

    def _reach(self, feature: int) -> float:
        """Returns how far beyond its thresholds a feature is drawn."""
        held = self._thresholds[feature]
        return float(max(held[-1] - held[0], np.abs(held).max() / 2)) or 1.0

    def _is_whole(self, feature: int) -> bool:
        """Whether the feature takes only whole numbers, and the ensemble reads the feature unchanged."""
        dtype = self._dtypes.get(feature)
        return dtype is not None and dtype.kind in "iu" and self._ensemble.columns[feature].exact

    def _whole(self, low: Rows, high: Rows, drawn: Rows, feature: int) -> Rows:
        """Returns the numbers. If only whole numbers are possible, rounds the numbers within the same interval."""
        if not self._is_whole(feature):
            return drawn
        return np.clip(np.rint(drawn), np.floor(low) + 1, np.maximum(np.floor(high), np.floor(low) + 1))

    def _beside(self, threshold: float, side: int, feature: int) -> float:
        if self._is_whole(feature):
            return float(np.floor(threshold) + side)
        dtype = self._dtypes.get(feature, np.dtype(np.float32))
        at = dtype.type(threshold) if dtype.kind == "f" else np.float32(threshold)
        return float(np.nextafter(at, at.dtype.type(side * np.inf)) if side else at)

    def _miss(self, made: dict[int, Rows], count: int, rng: np.random.Generator) -> None:
        """Sets some features of some rows to NaN (missing)."""
        for feature, numbers in made.items():
            if self._dtypes.get(feature, np.dtype(np.float32)).kind == "f":
                numbers[count // 2 :][rng.random(count - count // 2) < _MISSING] = np.nan


def _inner(rng: np.random.Generator, count: int) -> Rows:
    """Draws random points inside an interval, away from its ends."""
    return rng.uniform(0.1, 0.9, count)
