"""Checks with a Python function of the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from onnxsmith.comparison.reduction.checks.base import Attempt, Check, End, Failure, Outcome, failed
from onnxsmith.comparison.reduction.runtime_workers import Bench
from onnxsmith.runtimes.base import Feeds

Function = Callable[[Path, Feeds], object]
"""The caller's function. It gets the model's file and its inputs by name, and returns a true value if the model
fails."""


@dataclass(frozen=True)
class FunctionCheck(Check):
    """Calls a function in this process. Its crash ends the reduction, and its hang blocks it; a command is safer."""

    usage = ""

    function: Function

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        raise ValueError("a function is given from Python only")

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        try:
            fails = self.function(attempt.path, attempt.feeds)
        except Exception as error:  # noqa: BLE001 — the caller's code may raise anything on a cut model
            return Outcome(End.REFUSED, why=f"the check raised {type(error).__name__}: {error}")
        if not fails:
            return Outcome(End.PASSED, why="the check says that it does not fail")
        return failed(Failure("the check says that it fails", frozenset({"true"})))

    def script(self, failure: Failure) -> tuple[str, ...]:
        return (
            "import numpy as np",
            "import onnx",
            "",
            'model, feeds = onnx.load("model.onnx"), dict(np.load("inputs.npz"))',
            "print(onnx.printer.to_text(model.graph))",
            "print({name: value.shape for name, value in feeds.items()})",
        )

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status == 0  # the program only prints the case: the check itself stays with the caller
