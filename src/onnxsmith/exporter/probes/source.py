"""The linter's findings that a run or a trace confirms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.module.source_linting import Suspicion
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.exporter.tracing.frozen_code import at_line


class Source(Probe):
    """A suspected fixed axis counts if the trace fixed an axis at that line, or if the module accepts no other size. A
    finding that would stop a trace is only a note if the module can be exported anyway."""

    rank = 10

    def look(self, case: Case) -> Iterator[Finding]:
        for suspicion in case.suspicions:
            finding = suspicion.finding
            if suspicion.freezes and not self._froze(suspicion, case):
                continue
            if finding.problem.id == "forward/input-written" and case.seen.error is None and not case.seen.written:
                continue
            if finding.problem.id == "forward/random" and case.seen.error is None and not case.seen.drawn:
                continue
            if finding.problem.id == "forward/state" and case.seen.error is None:
                own = {name.rpartition(".")[2] for name in case.seen.state}
                if not any(f"self.{name}," in finding.problem.what for name in own):
                    continue
            if finding.weight is Weight.STOPS and (case.dynamic if suspicion.freezes else case.good):
                finding = replace(finding, weight=Weight.NOTE)
            elif finding.weight is Weight.STOPS and suspicion.freezes and case.stuck:
                finding = replace(finding, weight=Weight.WRONG)
            yield finding

    def _froze(self, suspicion: Suspicion, case: Case) -> bool:
        if case.built is None or not case.symbols:
            return False
        frozen = case.traced.suspected
        if suspicion.anywhere:
            return bool(frozen or case.stuck)
        return at_line(suspicion, [one.line for one in frozen])
