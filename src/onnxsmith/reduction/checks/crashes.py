"""A runtime crashes: its process dies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from onnxsmith.problem import OnnxsmithError
from onnxsmith.reduction import script
from onnxsmith.reduction.bench import Bench
from onnxsmith.reduction.checks.base import Attempt, Check, End, Failure, Outcome, ended, failed


@dataclass(frozen=True)
class Crashes(Check):
    """The process in which the runtime works dies, by the same signal or with the same exit status, while it does the
    same: loads the model, or runs it."""

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
        stage = "loads"
        try:
            session = bench.prepare(self.runtime, attempt.path, attempt.signature)
            stage = "runs"
            session.run(attempt.feeds)
        except OnnxsmithError as error:
            if error.problem.id != "runtime/died":
                return ended(error)
            cause = re.search(r"\((.*)\)", error.problem.what)
            how = cause[1] if cause else "unknown"
            return failed(Failure(f"{error.problem.what} while it {stage} the model", frozenset({f"{stage} {how}"})))
        return Outcome(End.PASSED, why=f"{self.runtime} loads and runs it")

    def script(self, failure: Failure) -> tuple[str, ...]:
        return (*script.opening(self.runtime), f"print({script.call(self.runtime)})")

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status < 0 or (status != 0 and "Traceback" not in said)
