"""All operators without a translation to ONNX, with their lines."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.factory import place
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.exporter.tracing import trace_diagnosis
from onnxsmith.exporter.translating import missing_operators


class Translations(Probe):
    """Looks up the translation of every operator in the program, so that all missing ones are reported at once. An
    operator without a fake implementation stops the trace, and is reported alone."""

    rank = 60

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None or case.good:
            return
        traced = case.traced
        if traced.exported is not None:
            found = trace_diagnosis.untranslated(traced.exported)
        else:
            found = missing_operators.shapeless(traced.error, traced.where)
        for one in found:
            file, _ = place(one.where)
            here = [other.target for other in found if place(other.where)[0] == file]
            first, last = missing_operators.end_of(one.where)
            code = missing_operators.registrations(here, file)
            yield Finding(one.problem, Weight.STOPS, "register", said=one.said, code=code, first=first, last=last)
