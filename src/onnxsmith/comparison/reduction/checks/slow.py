"""Checks that a runtime takes too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from onnxsmith.base.problem import Problem
from onnxsmith.comparison.reduction import script
from onnxsmith.comparison.reduction.checks._single_runtime import Single, Stage
from onnxsmith.comparison.reduction.checks.base import Attempt, Failure


@dataclass(frozen=True)
class Slow(Single):
    """Loading the model, or running it once, takes longer than the given seconds. Then it is stopped."""

    usage = "RUNTIME SECONDS"

    seconds: float

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        if len(words) != 2:
            raise ValueError("it takes a runtime and a number of seconds")
        seconds = float(words[1])
        if not 0 < seconds < float("inf"):
            raise ValueError("the number of seconds has to be more than 0")
        return cls(words[0], seconds)

    def patience(self) -> float:
        return self.seconds

    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        if found.id != "runtime/timeout":
            return None
        doing = {"load": "loading", "run": "running"}[stage]
        return Failure(f"{doing} it takes {self.runtime} longer than {self.seconds:g} s", frozenset({doing}))

    def script(self, failure: Failure) -> tuple[str, ...]:
        lines = script.opening(self.runtime)
        watch = f"faulthandler.dump_traceback_later({self.seconds:g}, exit=True)  # loading and running end before that"
        return ("import faulthandler", *lines, watch, f"print({script.call(self.runtime)})")

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status == 1 and "Timeout (" in said
