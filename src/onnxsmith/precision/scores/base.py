"""Defines a score: one number for what a model does on data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

Pairs = Iterable[tuple[Any, Any]]
"""Predictions, each with its label."""


class Score(ABC):
    """One measure. Scores are found by their files; the name on the command line is the name of the file."""

    title: ClassVar[str]
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    expects: ClassVar[str]
    """What a prediction and a label are, in words."""

    reads_first: ClassVar[bool] = True
    """Whether a prediction is made of the first output alone."""

    def predicted(self, outputs: Mapping[str, Any]) -> Any:
        """The prediction in the outputs of the model; by default the first output."""
        return next(iter(outputs.values()))

    def as_label(self, prediction: Any) -> Any:
        """What is expected of another model if this model's prediction is taken for the truth."""
        return prediction

    needs_data: ClassVar[bool] = True
    """Whether it says nothing on generated inputs."""

    @abstractmethod
    def value(self, pairs: Pairs) -> float:
        """The measure over all pairs, which can be read once."""


def mean(values: Iterable[float]) -> float:
    """The mean; NaN without values."""
    found = list(values)
    return float(np.mean(found)) if found else float("nan")


def text(found: Any) -> str:
    """A prediction as a text.

    Raises:
        TypeError: if it is none, so that arrays are not compared by how they are printed.
    """
    if isinstance(found, np.ndarray) and found.size == 1 and found.dtype.kind in "OUS":
        found = found.reshape(-1)[0]
    if isinstance(found, bytes):
        return found.decode(errors="replace")
    if not isinstance(found, str):
        raise TypeError(f"the prediction is of type {type(found).__name__}, not a text")
    return found


def distance(a: Any, b: Any) -> int:
    """The number of insertions, deletions and substitutions that make one sequence of the other (Levenshtein 1966)."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]
