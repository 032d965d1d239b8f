"""Tries cases: writes each to a file, lets the check judge it, and remembers the result."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.comparison.reduction.case import Case, written
from onnxsmith.comparison.reduction.checks.base import Attempt, Check, End, Failure, Outcome, names
from onnxsmith.comparison.reduction.runtime_workers import Bench
from onnxsmith.graph.structure.signature import signature

_ANOTHER = "another failure"


@dataclass
class Oracle:
    """Decides whether a case fails like the original. Equal cases are tried once."""

    check: Check
    bench: Bench
    first: Failure | None = None
    """The original's failure, with which later ones are compared; None until it is known."""
    tries: Counter[str] = field(default_factory=Counter)
    """The number of tries for each end."""
    remembered: int = 0
    slowest: float = 0.0
    told: Callable[[], None] = lambda: None
    known_names: frozenset[str] = frozenset()
    _seen: dict[bytes, bool] = field(default_factory=dict)

    def judge(self, case: Case) -> Outcome:
        """Returns the check's outcome for the case, which is written to a file of its own."""
        begin = time.perf_counter()
        with written(case.model) as path:
            own = names(case.model) | self.known_names
            attempt = Attempt(path, case.model, case.feeds, signature(case.model), own)
            outcome = self.check.judge(attempt, self.bench)
        self.slowest = max(self.slowest, time.perf_counter() - begin)
        return outcome

    def fails(self, case: Case | None) -> bool:
        """Whether the case fails like the original."""
        if case is None or self.first is None:
            return False
        key = case.key()
        if key in self._seen:
            self.remembered += 1
            return self._seen[key]
        try:
            outcome = self.judge(case)
        except OnnxsmithError as error:  # the case cannot be written, or its signature is invalid
            if error.problem.id.startswith("reduce/"):
                raise
            outcome = Outcome(End.REFUSED, why=error.problem.what)
        same = outcome.failure is not None and outcome.failure.is_like(self.first)
        self.tries[_ANOTHER if outcome.failure is not None and not same else outcome.end.value] += 1
        self._seen[key] = same
        self.told()
        return same
