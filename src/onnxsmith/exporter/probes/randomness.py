"""Random numbers that the source did not show: drawn by a package, or behind a call that reading cannot follow."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.exporter.lint.random_call import HELD
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.problem import Problem
from onnxsmith.report.parts.diagnosis import Finding, Weight


class Randomness(Probe):
    """Operators that drew while the module ran."""

    rank = 80

    def look(self, case: Case) -> Iterator[Finding]:
        told = {one.problem.where for one in case.found if one.problem.id == "forward/random"}
        for operator, where in dict.fromkeys(case.seen.drawn):
            if where not in told:
                told.add(where)
                yield Finding(
                    Problem(
                        "forward/random",
                        f"forward draws random numbers: {operator}",
                        where=where,
                        why=HELD,
                        fix="hand the numbers in as an argument of forward, where they are to be the same",
                    ),
                    Weight.NOTE,
                    "recompose",
                )
