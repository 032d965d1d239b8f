"""All branches on the values of tensors that stop a trace, not only the first."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.causes._message_text import sentence
from onnxsmith.exporter.probes.base import Case, Probe


class Data(Probe):
    """torch.export stops at the first such line; a draft export continues. Skips lines that the linter has reported."""

    rank = 40

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None or case.traced.error is None:
            return
        reported = {one.problem.where for one in case.found if one.weight is Weight.STOPS}
        said = sentence(str(case.traced.error), 200)
        for problem in case.traced.stops:
            if problem.where in reported or not problem.where:
                continue
            reported.add(problem.where)
            yield Finding(problem, Weight.NOTE if case.good else Weight.STOPS, "recompose", said=said)
