"""The problem of the first strategy, if no other probe has reported it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.verification.verification_verdict import problems

# After another finding that stops an export, the first two groups would only repeat it.
_GENERAL = ("export/capture-failed", "export/translation-failed", "export/fixed-by-the-example", "verify/different")
_MISTAKEN = ("export/object-input", "export/frozen-axis", "verify/nondeterministic")
_VAGUE = ("runtime/failed", "export/capture-failed", "export/translation-failed")
_RUNGS = {"export/opset": "opset", "runtime/no-kernel": "recompose", "export/quantized-module": "edit"}


class Ways(Probe):
    """Reports the first strategy's problem, or the differences of its graph."""

    rank = 70

    def look(self, case: Case) -> Iterator[Finding]:
        if case.good:
            return
        stops = [one for one in case.found if one.weight is not Weight.NOTE]
        for way in case.ways[:1]:
            found = [way.error.problem] if way.error else list(problems(way.made.verification)) if way.made else []
            for problem in found:
                reported = any(one.problem.where == problem.where or one.problem.id == problem.id for one in stops)
                if (stops and problem.id in (*_GENERAL, *_MISTAKEN)) or reported:
                    continue
                known = recognise(problem.why) if problem.id in _VAGUE else None
                problem = known or problem
                weight = Weight.WRONG if problem.id.startswith("verify/") else Weight.STOPS
                plain = replace(problem, why=problem.why.partition(" (tried as well")[0])
                yield Finding(plain, weight, _RUNGS.get(problem.id, "recompose"), said=problem.why)
