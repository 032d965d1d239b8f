"""Random draws that the linter did not find: in a package, or behind a call that it cannot follow."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.diagnosis import Finding, Weight
from onnxsmith.exporter.lint.random_call import HELD
from onnxsmith.exporter.probes.base import Case, Probe


class Randomness(Probe):
    """Reports the operators that drew random numbers while the module ran."""

    rank = 80

    def look(self, case: Case) -> Iterator[Finding]:
        reported = {one.problem.where for one in case.found if one.problem.id == "forward/random"}
        for operator, where in dict.fromkeys(case.seen.drawn):
            if where not in reported:
                reported.add(where)
                yield Finding(
                    Problem(
                        "forward/random",
                        f"forward draws random numbers: {operator}",
                        where=where,
                        why=HELD,
                        fix="pass the numbers as an argument of forward if they have to be the same",
                    ),
                    Weight.NOTE,
                    "recompose",
                )
