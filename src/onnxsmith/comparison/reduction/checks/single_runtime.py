"""Checks of one runtime: it refuses, crashes, or takes too long."""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.comparison.reduction import script
from onnxsmith.comparison.reduction.checks.base import (
    Attempt,
    Check,
    End,
    Failure,
    Outcome,
    ended,
    failed,
    is_refusal,
    mark,
)
from onnxsmith.comparison.reduction.runtime_workers import Bench

Stage = Literal["load", "run"]


@dataclass(frozen=True)
class _Single(Check):
    """Loads and runs the model on one runtime. `failure` distinguishes the wanted failure from other errors."""

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
        """Returns the failure that a problem while the model is loaded or run shows; None if it is another error."""

    def script(self, failure: Failure) -> tuple[str, ...]:
        return (*script.opening(self.runtime), f"print({script.call(self.runtime)})")


@dataclass(frozen=True)
class Refuses(_Single):
    """The runtime refuses to load or to run the model. The same failure is the same problem with the same message,
    apart from names and numbers."""

    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        if not is_refusal(found):
            return None
        what = f"{self.runtime} refuses to {stage} it: {found.what}. {found.why}".strip()
        return Failure(what, frozenset({f"{stage} {mark(found, attempt.names)}"}), doubtful=stage == "run")

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        marks = {"onnxruntime": "onnxruntime.capi"}
        return status == 1 and marks.get(self.runtime.partition(":")[0], "Traceback") in said


@dataclass(frozen=True)
class Crashes(_Single):
    """The runtime's process dies. The same failure is the same signal or exit status in the same stage: while the model
    is loaded, or while it runs."""

    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        if found.id != "runtime/died":
            return None
        cause = re.search(r"\((.*)\)", found.what)
        how = cause[1] if cause else "unknown"
        return Failure(f"{found.what} while it {stage}s the model", frozenset({f"{stage} {how}"}))

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status < 0 or (status != 0 and "Traceback" not in said)


@dataclass(frozen=True)
class Slow(_Single):
    """Loading the model, or running it once, takes longer than the given seconds. The call is then stopped."""

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
