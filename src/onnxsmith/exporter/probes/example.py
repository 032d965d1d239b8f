"""Whether the module runs on its example inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.probes.base import Case, Probe


class Example(Probe):
    """Reports the error of a module that does not run, unless the linter has reported the line."""

    rank = 20

    def look(self, case: Case) -> Iterator[Finding]:
        problem = case.refused
        if problem is None or any(one.problem.where == problem.where for one in case.found if problem.where):
            return
        known = recognise(problem.why, problem.where) if problem.id == "export/forward-failed" else None
        found = known or problem
        yield Finding(replace(found, where=found.where or problem.where), Weight.STOPS, "recompose", said=problem.why)
