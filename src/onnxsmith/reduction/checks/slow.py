"""A runtime takes too long."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from onnxsmith.problem import OnnxsmithError
from onnxsmith.reduction import script
from onnxsmith.reduction.bench import Bench
from onnxsmith.reduction.checks.base import Attempt, Check, End, Failure, Outcome, ended, failed


@dataclass(frozen=True)
class Slow(Check):
    """Loading the model, or running it once, takes longer than some seconds. It is stopped then."""

    usage = "RUNTIME SECONDS"

    runtime: str
    seconds: float

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        if len(words) != 2:
            raise ValueError("it takes a runtime and a number of seconds")
        seconds = float(words[1])
        if not 0 < seconds < float("inf"):
            raise ValueError("the number of seconds has to be more than 0")
        return cls(words[0], seconds)

    def runtimes(self) -> tuple[str, ...]:
        return (self.runtime,)

    def patience(self) -> float:
        return self.seconds

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        stage, begin = "loading", time.perf_counter()
        try:
            session = bench.prepare(self.runtime, attempt.path, attempt.signature, time_limit=self.seconds)
            stage, begin = "running", time.perf_counter()
            session.run(attempt.feeds)
        except OnnxsmithError as error:
            if error.problem.id != "runtime/timeout":
                return ended(error)
            what = f"{stage} it takes {self.runtime} longer than {self.seconds:g} s"
            return failed(Failure(what, frozenset({stage})))
        return Outcome(End.PASSED, why=f"{stage} it takes {time.perf_counter() - begin:.2g} s")

    def script(self, failure: Failure) -> tuple[str, ...]:
        lines = script.opening(self.runtime)
        watch = f"faulthandler.dump_traceback_later({self.seconds:g}, exit=True)  # loading and running end before that"
        return ("import faulthandler", *lines, watch, f"print({script.call(self.runtime)})")

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status == 1 and "Timeout (" in said
