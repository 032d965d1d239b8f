"""What the kinds of answers have in common: limits, differences, parts, and the base class."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxsmith.base.problem import problem
from onnxsmith.verification.rounding import refuse_unusable

TOLERANCES = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-4}
"""Maps a dtype to the largest difference of an array, relative to its largest magnitude. A choice: other kernels of one
network differ by 1e-6 to 1e-5 in float32. One weight that is off by 1% may move an output by less than the limit, so it
cannot see all of them. Float64 has the limit of float32, because most pipelines compute in float32 and return Python
floats."""
SCORE = 1e-3
"""Is the largest difference of a score between 0 and 1. A choice: rounding in float16 moves a probability by 1e-3."""
OVERLAP = 0.99
"""Is the least intersection over union of two boxes that are the same. A choice: a box of 100 pixels may move by a
quarter of a pixel; rounding in float32 moves it by a thousandth."""
NO_MEASURE = "no measure"
"""Is the kind of a difference of two parts that cannot be compared at all, so that they may well be the same."""


@dataclass(frozen=True)
class Limits:
    """Says how far two answers may be apart. `tolerance` replaces the limits of arrays and scores; `overlap` is the
    least intersection over union of two boxes that are the same.

    Raises:
        OnnxsmithError: `verify/tolerance`, `input/syntax` for a limit with which nothing could be found.
    """

    tolerance: float | None = None
    overlap: float = OVERLAP

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            refuse_unusable(self.tolerance)
        if not 0 < self.overlap <= 1:
            raise problem(
                "input/syntax",
                f"overlap={self.overlap:g} is not an overlap of boxes",
                fix="write a share above 0 and up to 1: overlap=0.99",
            )

    def of_array(self, dtype: np.dtype[Any]) -> float:
        """Returns the largest difference of an array of this dtype, relative to its largest magnitude."""
        return TOLERANCES.get(dtype.name, TOLERANCES["float32"]) if self.tolerance is None else self.tolerance

    @property
    def of_scores(self) -> float:
        """The largest difference of two scores, relative to the score if that is above 1."""
        return SCORE if self.tolerance is None else self.tolerance


@dataclass(frozen=True)
class Difference:
    """One difference of two answers. `at` is the place, written as Python would reach it: `["boxes"][2]`. `how` says
    how the parts were paired, if not by key alone."""

    at: str
    kind: str
    what: str
    how: str = ""


@dataclass(frozen=True)
class Part:
    """A part of two answers that is still to be compared, by the measure of its own kind. `how` is that of its
    differences."""

    at: str
    ours: Any
    theirs: Any
    how: str = ""


def by_key(ours: Mapping[Any, Any], theirs: Mapping[Any, Any], at: str, how: str = "") -> Iterator[Difference | Part]:
    """Yields the parts of two mappings, and a difference for each key that only one of them has."""
    for key in dict.fromkeys((*ours, *theirs)):
        place = f"{at}[{key!r}]"
        if key in ours and key in theirs:
            yield Part(place, ours[key], theirs[key], how)
        else:
            yield only_in(place, is_first=key in ours)


def only_in(place: str, *, is_first: bool) -> Difference:
    """Returns the difference of a key that one answer has, and the other has not."""
    return Difference(place, "keys", f"in the {'first' if is_first else 'second'} answer only")


@dataclass
class Counts:
    """Counts what was compared, so that a comparison of nothing is no pass: elements, boxes, texts and scores."""

    compared: int = 0
    largest: float = 0.0
    """The largest difference, in shares of its limit."""

    def add(self, count: int, share: float = 0.0) -> None:
        """Counts `count` compared things, of which the farthest apart took `share` of its limit."""
        self.compared += count
        self.largest = max(self.largest, share)


def distance(ours: float, theirs: float) -> float:
    """Returns how far two numbers are apart: 0 for two NaN or equal infinities, infinity for one alone."""
    if ours == theirs or (math.isnan(ours) and math.isnan(theirs)):
        return 0.0
    return abs(ours - theirs) if math.isfinite(ours) and math.isfinite(theirs) else math.inf


class Kind(ABC):
    """A kind of answer. A member is one file of this folder; the kinds are asked in the order of `rank`."""

    rank = 50

    @abstractmethod
    def fits(self, answer: Any) -> bool:
        """Whether an answer is of this kind."""

    @abstractmethod
    def differences(
        self, ours: Any, theirs: Any, at: str, limits: Limits, counts: Counts
    ) -> Iterator[Difference | Part]:
        """Yields the differences of two answers of this kind, and their parts of other kinds."""
