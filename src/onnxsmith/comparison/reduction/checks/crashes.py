"""Checks that a runtime crashes: its process dies."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onnxsmith.base.problem import Problem
from onnxsmith.comparison.reduction.checks._single_runtime import Single, Stage
from onnxsmith.comparison.reduction.checks.base import Attempt, Failure


@dataclass(frozen=True)
class Crashes(Single):
    """The runtime's process dies, by the same signal or with the same exit status, in the same stage: while it loads
    the model, or while it runs it."""

    def failure(self, found: Problem, stage: Stage, attempt: Attempt) -> Failure | None:
        if found.id != "runtime/died":
            return None
        cause = re.search(r"\((.*)\)", found.what)
        how = cause[1] if cause else "unknown"
        return Failure(f"{found.what} while it {stage}s the model", frozenset({f"{stage} {how}"}))

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status < 0 or (status != 0 and "Traceback" not in said)
