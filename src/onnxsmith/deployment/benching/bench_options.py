"""Holds the options of `bench`, and writes them as a command that measures in the same way."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SECONDS = 20.0
"""Default seconds of measuring. A choice."""


@dataclass(frozen=True)
class Request:
    """The options of a call of `bench`, under its own names."""

    subjects: Sequence[str]
    inputs: Mapping[str, Any] | Sequence[str]
    sizes: Mapping[str, int]
    batches: Sequence[int]
    batch_name: str
    threads: Sequence[int]
    profile: bool
    seconds: float
    tolerance: float | None
    seed: int

    def command(self, *models: object, subjects: bool = False) -> str:
        """Returns the command line that measures these models on the same input for the same time; with `subjects`, on
        the same runtimes. In place of Python arrays it gives their sizes."""
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
        return shlex.join(words)
