"""State that the source did not show."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.problem import Problem
from onnxsmith.report.parts.diagnosis import Finding, Weight


class State(Probe):
    """Buffers and attributes that one run changed. Whether anything reads them is not known, so it is a note."""

    rank = 90

    def look(self, case: Case) -> Iterator[Finding]:
        told = " ".join(one.problem.what for one in case.found if one.problem.id == "forward/state")
        silent = [name for name in case.seen.state if f"self.{name.rpartition('.')[2]}" not in told]
        if silent:
            yield Finding(
                Problem(
                    "forward/state",
                    f"forward changes {', '.join(silent)} of the module",
                    where=type(case.model.module).__qualname__,
                    why="a graph keeps nothing between calls",
                    fix="hand it in and out as an argument and a result, where the next call reads it",
                ),
                Weight.NOTE,
                "recompose",
            )
