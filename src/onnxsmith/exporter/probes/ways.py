"""What each way to capture has to say, where nothing else has said it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onnxsmith.causes.base import recognise
from onnxsmith.comparison.verdict import problems
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.report.parts.diagnosis import Finding, Weight

_GENERAL = ("export/capture-failed", "export/translation-failed", "export/fixed-by-the-example", "verify/different")
_MISTAKEN = ("export/object-input", "export/frozen-axis", "verify/nondeterministic")
_VAGUE = ("runtime/failed", "export/capture-failed", "export/translation-failed")
_RUNGS = {"export/opset": "opset", "runtime/no-kernel": "recompose", "export/quantized-module": "edit"}


class Ways(Probe):
    """The problem of the first way; of others only when the first has none."""

    rank = 70

    def look(self, case: Case) -> Iterator[Finding]:
        if case.good:
            return
        stops = [one for one in case.found if one.weight is not Weight.NOTE]
        for way in case.ways[:1]:
            found = [way.error.problem] if way.error else list(problems(way.made.verification)) if way.made else []
            for problem in found:
                told = any(one.problem.where == problem.where or one.problem.id == problem.id for one in stops)
                if (stops and problem.id in (*_GENERAL, *_MISTAKEN)) or told:
                    continue
                known = recognise(problem.why) if problem.id in _VAGUE else None
                problem = known or problem
                weight = Weight.WRONG if problem.id.startswith("verify/") else Weight.STOPS
                plain = replace(problem, why=problem.why.partition(" (tried as well")[0])
                yield Finding(plain, weight, _RUNGS.get(problem.id, "recompose"), said=problem.why)
