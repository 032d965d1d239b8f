"""Defines the base of scores: a score is one number for a model's predictions on data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
_SHOWN = 40
"""The most characters of a label in a message. A choice."""
Pairs = Iterable[tuple[Any, Any]]
"""Pairs of a prediction and its label."""


class Score(ABC):
    """Measures predictions against labels. Scores are found by walking this folder; the name on the command line is
    their id."""

    title: ClassVar[str]
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    expects: ClassVar[str]
    """What a prediction and a label are, in words."""

    reads_first: ClassVar[bool] = True
    """Whether a prediction is made from the first output alone."""

    worst: ClassVar[float | None] = None
    """The score of a model that is always wrong, or None. A given model with this score or worse is refused, because
    any model would be within its budget."""

    cap: ClassVar[float | None] = None
    """The score of equal predictions, if it says nothing about how near others can come; else None."""

    needs_data: ClassVar[bool] = True
    """Whether the score is meaningless on generated inputs."""

    def predicted(self, outputs: Mapping[str, Any]) -> Any:
        """Returns the prediction from the outputs of the model; by default the first output."""
        return next(iter(outputs.values()))

    def as_label(self, prediction: Any) -> Any:
        """Turns this model's prediction into a label for other models."""
        return prediction

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        """Says why the label does not fit the prediction, in words that follow "the label"; "" if it fits. `outputs`
        are those of the model, None if the user decodes them."""
        return ""

    def by_output(self) -> Mapping[str, float]:
        """Returns the score of each output in the last measurement, if the score has several."""
        return {}

    @abstractmethod
    def value(self, pairs: Pairs) -> float:
        """Computes the score over all pairs. `pairs` can be read only once."""


def mean(values: Iterable[float]) -> float:
    """Returns the mean; NaN if there are no values."""
    found = list(values)
    return float(np.mean(found)) if found else float("nan")


def is_whole(numbers: Numbers) -> bool:
    """Whether all elements are whole numbers, in any dtype."""
    if numbers.dtype.kind == "f":
        return bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())
    return numbers.dtype.kind in "biu"


def unlike(prediction: Any, label: Any) -> str:
    """Says why the label does not have one number for each number of the prediction, as `Score.unfit` does."""
    wanted, found = np.asarray(label), np.asarray(prediction)
    if wanted.dtype.kind not in "biuf":
        return f"is {said(label)}, not numbers"
    return "" if wanted.size == found.size else f"has {wanted.size:,} numbers, the prediction has {found.size:,}"


def unlike_text(label: Any) -> str:
    """Says why the label is neither a text nor a number, as `Score.unfit` does."""
    is_one = isinstance(label, str | bytes | int | float) or (
        isinstance(label, np.generic | np.ndarray) and label.ndim == 0
    )
    return "" if is_one else f"is {said(label)}, not a text"


def said(label: Any) -> str:
    """Formats a label for a message."""
    shown = repr(label.tolist() if isinstance(label, np.ndarray | np.generic) else label)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def text(found: Any) -> str:
    """Returns a prediction as a text.

    Raises:
        TypeError: if it is no text, so that arrays are not compared by how they are printed.
    """
    if isinstance(found, np.ndarray) and found.size == 1 and found.dtype.kind in "OUS":
        found = found.reshape(-1)[0]
    if isinstance(found, bytes):
        return found.decode(errors="replace")
    if not isinstance(found, str):
        raise TypeError(f"the prediction is of type {type(found).__name__}, not a text")
    return found


def distance(a: Any, b: Any) -> int:
    """Returns the number of insertions, deletions and substitutions that turn `a` into `b` (Levenshtein 1966)."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]
