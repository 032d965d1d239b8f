"""Defines a score: one number for what a model does on data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
_SHOWN = 40
"""Characters of a label in a message. A choice."""
Pairs = Iterable[tuple[Any, Any]]
"""Predictions, each with its label."""


class Score(ABC):
    """One measure. Scores are found by walking this folder; the name on the command line is their id."""

    title: ClassVar[str]
    better: ClassVar[Literal["higher", "lower"]] = "higher"
    expects: ClassVar[str]
    """What a prediction and a label are, in words."""

    reads_first: ClassVar[bool] = True
    """Whether a prediction is made of the first output alone."""

    worst: ClassVar[float | None] = None
    """The score of a model that is right nowhere, or worse: no budget can start there. None if there is none."""

    needs_data: ClassVar[bool] = True
    """Whether it says nothing on generated inputs."""

    def predicted(self, outputs: Mapping[str, Any]) -> Any:
        """The prediction in the outputs of the model; by default the first output."""
        return next(iter(outputs.values()))

    def as_label(self, prediction: Any) -> Any:
        """What is expected of another model if this model's prediction is taken for the truth."""
        return prediction

    def unfit(self, prediction: Any, label: Any, outputs: Mapping[str, Any] | None) -> str:
        """Why the label cannot be that of the prediction, in words that follow "the label"; "" if it can. `outputs` are
        those of the model, None if the user decodes them."""
        return ""

    @abstractmethod
    def value(self, pairs: Pairs) -> float:
        """The measure over all pairs, which can be read once."""


def mean(values: Iterable[float]) -> float:
    """The mean; NaN without values."""
    found = list(values)
    return float(np.mean(found)) if found else float("nan")


def is_whole(numbers: Numbers) -> bool:
    """Whether all are whole numbers, of any dtype."""
    if numbers.dtype.kind == "f":
        return bool(np.isfinite(numbers).all() and (numbers == np.round(numbers)).all())
    return numbers.dtype.kind in "biu"


def unlike(prediction: Any, label: Any) -> str:
    """Why the label is not a number for each one of the prediction; as in `Score.unfit`."""
    wanted, found = np.asarray(label), np.asarray(prediction)
    if wanted.dtype.kind not in "biuf":
        return f"is {said(label)}, not numbers"
    return "" if wanted.size == found.size else f"has {wanted.size:,} numbers, the prediction has {found.size:,}"


def unlike_text(label: Any) -> str:
    """Why the label is no text or number; as in `Score.unfit`."""
    is_one = isinstance(label, str | bytes | int | float) or (
        isinstance(label, np.generic | np.ndarray) and label.ndim == 0
    )
    return "" if is_one else f"is {said(label)}, not a text"


def said(label: Any) -> str:
    """A label in a message."""
    shown = repr(label.tolist() if isinstance(label, np.ndarray | np.generic) else label)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


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
