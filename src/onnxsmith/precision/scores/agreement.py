"""Scores how well the outputs of a model agree with those of the given model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.precision.scores.base import Pairs, Score

_CONSTANT = 1e-12
"""The share of its squares below which an output's spread is rounding: the output is the same for all samples. A
choice: float32 rounds to 6e-8, squared 4e-15."""


class Agreement(Score):
    """The share of an output's variation over the samples that a model keeps, of the output where it is least.

    For floats it is 1 - Σ(a - b)² / Σ(b - mean of b)² (the coefficient of determination, R²), with the mean of each
    element over the samples, or over all elements if there is one sample or the sizes differ. 1 means equal outputs, 0
    the error of an output that is always its mean. An output that is the same for all samples is divided by Σb². For
    integers, bools and texts it is the share of equal elements. `weights` make the error of an output count less or
    more, by name.
    """

    title = "agreement of the outputs"
    worst = 0.0
    expects = "the outputs by name, as the given model has them"
    reads_first = False
    needs_data = False

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self.weights = dict(weights or {})
        if self.weights:
            self.title = "agreement of the outputs: the error of each output relative to its budget"  # type: ignore[misc]
        self.constant: tuple[str, ...] = ()
        """The outputs that were the same for all samples of the last measurement."""
        self._last: dict[str, float] = {}

    def predicted(self, outputs: Mapping[str, Any]) -> Any:
        return dict(outputs)

    def by_output(self) -> Mapping[str, float]:
        return self._last

    def value(self, pairs: Pairs) -> float:
        found: dict[str, _Sums] = {}
        for prediction, label in pairs:
            ours, theirs = (one if isinstance(one, Mapping) else {"": one} for one in (prediction, label))
            for name, value in theirs.items():
                found.setdefault(name, _Sums()).add(ours.get(name), value)
        losses = {name: one.loss() for name, one in found.items()}
        self.constant = tuple(name for name, one in found.items() if one.is_constant())
        self._last = {name: 1 - loss for name, loss in losses.items()}
        if not losses or any(math.isnan(loss) for loss in losses.values()):
            return math.nan
        return 1 - max(loss * self.weights.get(name, 1.0) for name, loss in losses.items())


class _Sums:
    """What has to be summed over the samples for one output."""

    def __init__(self) -> None:
        self.error = self.squares = self.total = 0.0
        self.count = self.samples = self.unequal = 0
        self.sums: Any = None
        self.alike = True
        self.spoiled = False
        self.first: Any = None
        self.same = True

    def add(self, ours: Any, theirs: Any) -> None:
        wanted = np.asarray(theirs)
        given = np.asarray(ours)
        self.samples += 1
        if given.shape != wanted.shape:
            self.spoiled = True
            return
        self.count += wanted.size
        if wanted.dtype.kind in "biuOUS":
            self.unequal += int(np.sum(given != wanted))
            self.first = wanted if self.first is None else self.first
            self.same = self.same and np.array_equal(self.first, wanted)
            return
        a, b = (one.astype(np.complex128 if wanted.dtype.kind == "c" else np.float64) for one in (given, wanted))
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            self.spoiled = True
            return
        self.error += float(np.sum(np.abs(a - b) ** 2))
        self.squares += float(np.sum(np.abs(b) ** 2))
        self.total += b.sum()
        self.alike = self.alike and (self.sums is None or self.sums.shape == b.shape)
        self.sums = (b if self.sums is None else self.sums + b) if self.alike else None

    def spread(self) -> float:
        """Returns the sum of the squared distances to the mean."""
        if self.alike and self.samples > 1:
            return max(self.squares - float(np.sum(np.abs(self.sums) ** 2)) / self.samples, 0.0)
        return max(self.squares - float(np.abs(self.total) ** 2) / self.count, 0.0) if self.count else 0.0

    def is_constant(self) -> bool:
        """Whether the output is the same for all samples, of which there are two or more."""
        if self.samples < 2 or self.spoiled:
            return False
        return self.same if self.first is not None else self.spread() <= _CONSTANT * self.squares

    def loss(self) -> float:
        """Returns the lost share; NaN if a value is not finite, or a shape differs."""
        if self.spoiled:
            return math.nan
        if self.first is not None:
            return self.unequal / self.count if self.count else 0.0
        spread = self.spread()
        scale = spread if spread > _CONSTANT * self.squares else self.squares
        if self.error == 0:
            return 0.0
        return self.error / scale if scale else math.inf
