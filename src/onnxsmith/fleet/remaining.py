"""Estimates how long the cells take that are left.

The time of a cell is taken as the factor of its model times the factor of its column (setting and environment). Factors
are ratios of sums over the cells that are done; a factor with few cells is drawn towards 1. A model without a cell
gets its factor from its size, if the sizes of the others explain theirs. Where an earlier run measured the cell, its
time counts instead, corrected by how this run compares with that one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onnxsmith.fleet.run_list import Place

_PRIOR = 0.5
"""The weight of the common mean in a factor, in cells. A choice."""
_LEAST_MODELS = 6
"""Models that have to be done before their sizes say anything. A choice."""


@dataclass(frozen=True)
class Work:
    """A cell as far as its time goes. `bytes` is the size of the model's files, 0 if unknown; `before` are the seconds
    of an earlier run, None if there are none."""

    place: Place
    bytes: int = 0
    before: float | None = None


class Remaining:
    """The cells of a run, and how long those took that are done."""

    def __init__(self, work: Iterable[Work], workers: int) -> None:
        self._left = {one.place: one for one in work}
        self._workers = workers
        self._done: list[tuple[Work, float]] = []

    def finished(self, place: Place, seconds: float) -> None:
        """Notes that a cell is done, and how long it took."""
        self._done.append((self._left.pop(place), seconds))

    def seconds(self, running: Mapping[Place, float] | None = None) -> float | None:
        """Returns the seconds until the last cell is done; None before the first cell is done. `running` has the
        seconds since the start of each cell that runs now."""
        if not any(seconds for _, seconds in self._done):  # cells that were lost took no time
            return None
        expected = self._expected()
        running = running or {}
        times = [max(expected[place] - running.get(place, 0.0), 0.0) for place in self._left]
        return max(sum(times) / self._workers, max(times, default=0.0) if len(times) <= self._workers else 0.0)

    def _expected(self) -> dict[Place, float]:
        mean = sum(seconds for _, seconds in self._done) / len(self._done)
        columns = self._factors(mean, column=True, others={})
        models = self._factors(mean, column=False, others=columns)
        known = [(work.before, seconds) for work, seconds in self._done if work.before]
        pace = sum(seconds for _, seconds in known) / sum(before for before, _ in known) if known else 1.0
        by_size = self._by_size(models)
        expected = {}
        for place, work in self._left.items():
            model, column = place[0], place[1:]
            of_model = models[model] if model in models else by_size(work.bytes)
            expected[place] = work.before * pace if work.before else mean * of_model * columns.get(column, 1.0)
        return expected

    def _factors(self, mean: float, *, column: bool, others: Mapping[object, float]) -> dict[object, float]:
        """Returns the factor of each column, or of each model after the factors of the columns."""
        took: dict[object, float] = defaultdict(float)
        usual: dict[object, float] = defaultdict(float)
        for work, seconds in self._done:
            model, rest = work.place[0], work.place[1:]
            took[rest if column else model] += seconds
            usual[rest if column else model] += mean * others.get(rest, 1.0)
        return {key: (took[key] + _PRIOR * mean) / (usual[key] + _PRIOR * mean) for key in took}

    def _by_size(self, models: Mapping[object, float]) -> _Line:
        """Returns a line through the logarithms of the factors and sizes of models."""
        sizes = {work.place[0]: work.bytes for work, _ in self._done if work.bytes}
        points = [(math.log(sizes[name]), math.log(factor)) for name, factor in models.items() if name in sizes]
        if len(points) < _LEAST_MODELS:
            return _Line(0.0, 0.0, 1.0)
        x, y = (sum(column) / len(points) for column in zip(*points, strict=True))
        spread = sum((a - x) ** 2 for a, _ in points)
        slope = sum((a - x) * (b - y) for a, b in points) / spread if spread else 0.0
        fitted = [math.exp(y + slope * (a - x)) for a, _ in points]
        scale = sum(math.exp(b) for _, b in points) / sum(fitted)  # so that the mean of the factors is kept
        return _Line(x, slope, scale * math.exp(y))


@dataclass(frozen=True)
class _Line:
    """A factor by size: `level` at the logarithm `x`, growing with the power `slope`."""

    x: float
    slope: float
    level: float

    def __call__(self, size: int) -> float:
        return self.level * math.exp(self.slope * (math.log(size) - self.x)) if size else self.level
