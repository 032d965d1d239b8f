"""A runtime refuses to load the model, or to run it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from onnxsmith.problem import OnnxsmithError
from onnxsmith.reduction import script
from onnxsmith.reduction.bench import Bench
from onnxsmith.reduction.checks.base import Attempt, Check, End, Failure, Outcome, ended, failed, mark

_FATAL = {"runtime/died", "runtime/timeout", "runtime/closed"}


@dataclass(frozen=True)
class Refuses(Check):
    """The runtime says no: while it loads the model or, where it loads, while it runs it. The same failure is the same
    problem with the same message, but for names and numbers."""

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
        try:
            session = bench.prepare(self.runtime, attempt.path, attempt.signature)
        except OnnxsmithError as error:
            return self._refused("load", error, attempt)
        try:
            session.run(attempt.feeds)
        except OnnxsmithError as error:
            return self._refused("run", error, attempt)
        return Outcome(End.PASSED, why=f"{self.runtime} loads and runs it")

    def _refused(self, stage: str, error: OnnxsmithError, attempt: Attempt) -> Outcome:
        found = error.problem
        if found.id in _FATAL or found.id.startswith("run/"):
            return ended(error)
        what = f"{self.runtime} refuses to {stage} it: {found.what}. {found.why}".strip()
        marks = frozenset({f"{stage} {mark(found, attempt.names)}"})
        return failed(Failure(what, marks, doubtful=stage == "run"))

    def script(self, failure: Failure) -> tuple[str, ...]:
        return (*script.opening(self.runtime), f"print({script.call(self.runtime)})")

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        marks = {"onnxruntime": "onnxruntime.capi", "reference": "Traceback"}
        return status == 1 and marks.get(self.runtime.partition(":")[0], "Traceback") in said
