"""Shared code of the checks that use one runtime."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.comparison.reduction import script
from onnxsmith.comparison.reduction.checks.base import Attempt, Check, End, Failure, Outcome, ended, failed
from onnxsmith.comparison.reduction.runtime_workers import Bench

Stage = Literal["load", "run"]


@dataclass(frozen=True)
class Single(Check):
    """Loads and runs the model on one runtime; `failure` tells the wanted failure from other errors."""

    usage = "RUNTIME"

    runtime: str

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        if len(words) != 1:
            raise ValueError("it takes one runtime")
        return cls(words[0])

    def runtimes(self) -> tuple[str, ...]:
        return (self.runtime,)

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        stage: Stage = "load"
        begin = time.perf_counter()
        try:
            session = bench.prepare(self.runtime, attempt.path, attempt.signature, time_limit=self.patience())
            stage = "run"
            session.run(attempt.feeds)
        except OnnxsmithError as error:
            failure = self.failure(error.problem, stage, attempt)
            return ended(error) if failure is None else failed(failure)
        return Outcome(End.PASSED, why=f"{self.runtime} loads and runs it in {time.perf_counter() - begin:.2g} s")

    @abstractmethod
    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        """The failure that the problem shows, met while the model was loaded or run; None if it is another error."""

    def script(self, failure: Failure) -> tuple[str, ...]:
        return (*script.opening(self.runtime), f"print({script.call(self.runtime)})")
