"""Every operator that has no ONNX form, with its line."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.exporter.tracing import probing
from onnxsmith.exporter.translating import missing_operators
from onnxsmith.report.parts.diagnosis import Finding, Weight
from onnxsmith.sources.factory import place


class Translations(Probe):
    """The program as it would be translated; each operator is looked up, so none hides behind another. One that does
    not say its shapes stops the trace, and is told alone."""

    rank = 60

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None or case.good:
            return
        traced = case.traced
        if traced.exported is not None:
            found = probing.untranslated(traced.exported)
        else:
            found = missing_operators.shapeless(traced.error, traced.where)
        for one in found:
            file, _ = place(one.where)
            here = [other.target for other in found if place(other.where)[0] == file]
            first, last = missing_operators.end_of(one.where)
            code = missing_operators.registrations(here, file)
            yield Finding(one.problem, Weight.STOPS, "register", said=one.said, code=code, first=first, last=last)
