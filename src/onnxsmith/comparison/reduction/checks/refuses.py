"""Checks that a runtime refuses to load or to run the model."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.problem import Problem
from onnxsmith.comparison.reduction.checks._single_runtime import Single, Stage
from onnxsmith.comparison.reduction.checks.base import Attempt, Failure, is_refusal, mark


@dataclass(frozen=True)
class Refuses(Single):
    """The runtime refuses to load the model, or to run it. The same failure is the same problem with the same message,
    apart from names and numbers."""

    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        if not is_refusal(found):
            return None
        what = f"{self.runtime} refuses to {stage} it: {found.what}. {found.why}".strip()
        return Failure(what, frozenset({f"{stage} {mark(found, attempt.names)}"}), doubtful=stage == "run")

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        marks = {"onnxruntime": "onnxruntime.capi"}
        return status == 1 and marks.get(self.runtime.partition(":")[0], "Traceback") in said
