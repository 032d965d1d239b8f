"""State changes that the linter did not find."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.probes.base import Case, Probe


class State(Probe):
    """Reports buffers and attributes that one run changed, as a note: it is unknown whether a later call reads them."""

    rank = 90

    def look(self, case: Case) -> Iterator[Finding]:
        reported = " ".join(one.problem.what for one in case.found if one.problem.id == "forward/state")
        silent = [name for name in case.seen.state if f"self.{name.rpartition('.')[2]}" not in reported]
        if silent:
            yield Finding(
                Problem(
                    "forward/state",
                    f"forward changes {', '.join(silent)} of the module",
                    where=type(case.model.module).__qualname__,
                    why="a graph has no state between calls",
                    fix="if the next call reads it, export with --state auto: it becomes an input and an output",
                ),
                Weight.NOTE,
                "recompose",
            )
