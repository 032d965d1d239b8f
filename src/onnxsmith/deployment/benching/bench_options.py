"""Holds the options of `bench`, and writes them as a command that measures in the same way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.base.words import pasted_words
from onnxsmith.graph.structure.dim_ranges import Size

SECONDS = 20.0
"""Sets the default seconds of measuring, for all subjects together. A choice."""


def refuse_no_time(seconds: float) -> None:
    """Raises if nothing can be measured for a time of `seconds`.

    Raises:
        OnnxsmithError: `input/syntax` if it is 0, negative, infinite or NaN.
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise problem(
            "input/syntax", f"{seconds:g} seconds is not a valid time for a measurement", fix="write --seconds 10"
        )


@dataclass(frozen=True)
class Request:
    """Holds the options of a call of `bench`, under the names of `bench`.

    Raises:
        OnnxsmithError: `input/syntax` for a time in which nothing can be measured.
    """

    subjects: Sequence[str]
    inputs: Mapping[str, Any] | Sequence[str]
    sizes: Mapping[str, Size]
    batches: Sequence[int]
    batch_name: str
    threads: Sequence[int]
    profile: bool
    seconds: float
    tolerance: float | None
    seed: int

    def __post_init__(self) -> None:
        refuse_no_time(self.seconds)

    def command(self, *models: object, subjects: bool = False) -> str:
        """Returns the command line that measures these models on the same input for the same time. With `subjects`,
        measures on the same runtimes. In place of Python arrays, the command gives the arrays' sizes."""
        words = ["onnxsmith", "bench", *map(str, models)]
        words += [f"--subject={name}" for name in self.subjects] if subjects else []
        for name, size in self.sizes.items():
            words += ["--dim", f"{name}={size}"]
        for one in () if isinstance(self.inputs, Mapping) else self.inputs:
            words += ["--input", str(one)]
        if self.seconds != SECONDS:
            words += ["--seconds", f"{self.seconds:g}"]
        if self.seed:
            words += ["--seed", str(self.seed)]
        return pasted_words(words)


# Reads numbers from the command line.


def counts(text: str, example: str) -> tuple[int, ...]:
    """Reads whole numbers above 0 from a text such as `1,4,16`.

    Raises:
        OnnxsmithError: `input/syntax`.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() and int(word) for word in words):
        raise problem("input/syntax", f"{text!r} is not a list of numbers above 0", fix=f"write {example}")
    return tuple(int(word) for word in words)


def share(text: str, example: str) -> float:
    """Reads a share from a text such as `5%` or `0.05`.

    Raises:
        OnnxsmithError: `input/syntax`.
    """
    try:
        found = float(text.strip().removesuffix("%")) / (100 if "%" in text else 1)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise problem("input/syntax", f"{text!r} is not a share", fix=f"write {example}")
    return found
