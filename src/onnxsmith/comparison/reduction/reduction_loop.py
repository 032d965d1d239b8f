"""Runs the steps of a reduction, and counts tries and nodes."""

from __future__ import annotations

from onnxsmith.base.clock import advance
from onnxsmith.base.report.parts.edits import Step
from onnxsmith.comparison.reduction import reduction_steps
from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.checks.base import names
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.tensor_facts import Known
from onnxsmith.comparison.reduction.tensor_recording import pruned, record


class Process:
    """One reduction: the smallest case so far, its recorded tensors, and the steps taken."""

    def __init__(self, case: Case, oracle: Oracle) -> None:
        self.case, self.oracle = case, oracle
        self._total = case.nodes
        self.steps = [Step("the original", self._total, 0)]
        oracle.known_names = names(case.model)
        oracle.told = self._tell
        self._tried = 0
        self._known: Known | None = None

    def run(self) -> Case:
        """Repeats every step as long as it helps. Returns the smallest case."""
        smaller = fed(pruned(self.case.model), self.case.feeds)
        if self.oracle.fails(smaller):
            self._take("nodes that no output needs", smaller, keeps_values=True)
        self._cut()
        while self._open():
            self._cut()
        for name, step in reduction_steps.SHRINKS:
            self._take(name, step(self.case, self.oracle), keeps_values=False)
        self._cut()
        return self.case

    def _cut(self) -> None:
        while self.case.nodes > 1:
            before = self.case
            for name, step in reduction_steps.CUTS:
                self._take(
                    name, step(self.case, self._values(), self.oracle), keeps_values=name in reduction_steps.EXACT
                )
            if self.case is before:
                return

    def _open(self) -> bool:
        before = self.case
        for name, step in reduction_steps.OPENINGS:
            if self.case.nodes > 1:
                self._take(name, step(self.case, self._values(), self.oracle), keeps_values=False)
        return self.case is not before

    def _values(self) -> Known:
        """Returns the recorded tensors of the current case. Records on demand, because running a failing model may be
        slow."""
        if self._known is None:
            bench = self.oracle.bench
            self._known = record(self.case, bench, self.oracle.check.patience() or bench.time_limit)
        return self._known

    def _take(self, name: str, case: Case, *, keeps_values: bool) -> None:
        tried = sum(self.oracle.tries.values())
        if case is not self.case:
            self.case = case
            if not keeps_values:
                self._known = None
        if tried > self._tried:
            self.steps.append(Step(name, case.nodes, tried - self._tried))
        self._tried = tried

    def _tell(self) -> None:
        advance("reduce", self._total - self.case.nodes, self._total)
