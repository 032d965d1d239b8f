"""Estimates how long the cells take that are left.

The time of a cell is taken as the product of three factors. One is that of its column (setting and environment). One
follows from the size of its model: `1 + k · size^p`, for a part that each model takes and a part that grows with it; k
and p are those that explain the cells that are done. One is that of the model itself, as far as its other cells tell.
Factors are fitted to logarithms, because times of models differ by powers of ten, and a factor with few cells is drawn
towards 1. Where an earlier run measured the cell, its time counts instead, corrected by how this run compares with it.

Cells that end first are the short ones. So a cell that runs counts, too, once it is longer than expected: as one that
takes twice as long as it ran until now. The workers are then played with the expected times.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onnxsmith.fleet.run_list import Place

_PRIOR = 0.5
"""The weight of 1 in the factor of a model, in cells. A choice."""
_PRIOR_OF_COLUMN = 1.0
"""The weight of the other columns in the factor of a column, in cells. A choice."""
_LEAST_MODELS = 6
"""Models that have to be done before their sizes say anything. A choice."""
_POWERS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
"""Exponents p of the size that are tried. A convolution takes less time for each byte than a matrix product."""
_SHARES = (*(10.0**power for power in np.arange(-2, 2.5, 0.5)), 1e4)
"""Numbers k that are tried, for a size of 1: the median."""


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
        """Notes that a cell is done, and how long it took; 0 if it was not computed."""
        work = self._left.pop(place)
        if seconds > 0:
            self._done.append((work, seconds))

    def seconds(self, running: Mapping[Place, float] | None = None) -> float | None:
        """Returns the seconds until the last cell is done; None before the first cell is done. `running` has the
        seconds since the start of each cell that runs now."""
        if not self._done:
            return None
        running = {place: seconds for place, seconds in (running or {}).items() if place in self._left}
        expected = self._expected(running)
        ends = [0.0] * self._workers
        for place in (*running, *(place for place in self._left if place not in running)):
            heapq.heapreplace(ends, ends[0] + max(expected[place] - running.get(place, 0.0), 0.0))
        return max(ends)

    def _expected(self, running: Mapping[Place, float]) -> dict[Place, float]:
        fit = _Fit(self._done)
        late = [(self._left[place], 2 * passed) for place, passed in running.items()]
        late = [(work, seconds) for work, seconds in late if seconds > fit.seconds(work)]
        if late:
            fit = _Fit([*self._done, *late])
        known = [(work.before, seconds) for work, seconds in self._done if work.before]
        pace = sum(seconds for _, seconds in known) / sum(before for before, _ in known) if known else 1.0
        return {place: work.before * pace if work.before else fit.seconds(work) for place, work in self._left.items()}


class _Fit:
    """The factors that explain the times of some cells."""

    def __init__(self, done: Sequence[tuple[Work, float]]) -> None:
        self._columns = {
            column: index for index, column in enumerate(dict.fromkeys(work.place[1:] for work, _ in done))
        }
        self._median = float(np.median([work.bytes for work, _ in done if work.bytes] or [1]))
        logs = np.log([seconds for _, seconds in done])
        sizes = np.array([self._size(work) for work, _ in done])
        columns = np.array([self._columns[work.place[1:]] for work, _ in done])
        cells = np.bincount(columns)
        least = math.inf
        models = {work.place[0] for work, _ in done if work.bytes}
        grid = [(k, p) for p in _POWERS for k in _SHARES] if len(models) >= _LEAST_MODELS else [(0.0, 0.0)]
        for k, p in grid:
            rest = logs - np.log1p(k * sizes**p)
            effects = np.bincount(columns, rest) + _PRIOR_OF_COLUMN * rest.mean()
            effects /= cells + _PRIOR_OF_COLUMN
            rest -= effects[columns]
            if float(rest @ rest) < least:
                least, self._k, self._p, self._effects, left_over = float(rest @ rest), k, p, effects, rest
        self._of_model = self._models(done, left_over)
        own = left_over - np.array([self._of_model[work.place[0]] for work, _ in done])
        self._scatter, self._scatter_of_new = float(own.var()) / 2, float(left_over.var()) / 2

    def _size(self, work: Work) -> float:
        return (work.bytes or self._median) / self._median

    def _models(self, done: Sequence[tuple[Work, float]], rest: Sequence[float]) -> dict[str, float]:
        by_model: dict[str, list[float]] = defaultdict(list)
        for (work, _), one in zip(done, rest, strict=True):
            by_model[work.place[0]].append(float(one))
        return {model: sum(rests) / (len(rests) + _PRIOR) for model, rests in by_model.items()}

    def seconds(self, work: Work) -> float:
        """Returns the time that a cell is expected to take: the mean of a log-normal distribution."""
        column = self._columns.get(work.place[1:])
        effect = float(self._effects.mean() if column is None else self._effects[column])
        log = math.log1p(self._k * self._size(work) ** self._p) + effect
        model = self._of_model.get(work.place[0])
        return math.exp(log + self._scatter_of_new if model is None else log + model + self._scatter)
