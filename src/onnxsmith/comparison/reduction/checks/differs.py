"""Checks that two runtimes give different outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.comparison.reduction import script
from onnxsmith.comparison.reduction.checks.base import (
    Attempt,
    Check,
    End,
    Failure,
    Outcome,
    ended,
    failed,
    is_refusal,
    mark,
)
from onnxsmith.comparison.reduction.runtime_workers import Bench, identity
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.rounding import Rounding, roundings
from onnxsmith.verification.value_comparison import Difference, difference


@dataclass(frozen=True)
class Differs(Check):
    """An output differs by more than rounding explains, or one runtime refuses a model that the other accepts. The same
    failure differs in the same respect (values, NaN, shape, dtype), by at least a hundredth of the first difference."""

    usage = "RUNTIME RUNTIME"

    first: str
    second: str

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        if len(words) != 2 or identity(words[0]) == identity(words[1]):
            raise ValueError("it takes two different runtimes")
        return cls(*words)

    def runtimes(self) -> tuple[str, ...]:
        return (self.first, self.second)

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        answers: list[Outputs] = []
        refusals: list[tuple[str, Problem]] = []
        for name in (self.first, self.second):
            try:
                answers.append(bench.prepare(name, attempt.path, attempt.signature).run(attempt.feeds))
            except OnnxsmithError as error:
                if not is_refusal(error.problem):
                    return ended(error)
                refusals.append((name, error.problem))
        if len(refusals) == 2:
            return Outcome(End.REFUSED, why="; ".join(f"{name}: {found.why}" for name, found in refusals))
        if refusals:
            name, found = refusals[0]
            what = f"{name} refuses a model that the other runtime accepts: {found.what}. {found.why}"
            return failed(Failure(what, frozenset({f"{name} {mark(found, attempt.names)}"}), raises=True))
        return self._compared(attempt, *answers)

    def _compared(self, attempt: Attempt, first: Outputs, second: Outputs) -> Outcome:
        if not any(difference(first[name], second[name], 0.0).reason for name in first):
            return Outcome(End.PASSED, why="every output is equal")
        # Only for unequal outputs, because the bounds need shape inference.
        bounds = roundings(inferred(attempt.model)[0])
        found = dict(_differences(first, second, bounds))
        if not found:
            return Outcome(End.PASSED, why="no output differs by more than rounding explains")
        worst = max(found, key=lambda name: found[name].worst_rel)
        marks = frozenset(re.sub(r"\[[^\]]*\]|\d[\d.,]*", "#", item.reason) for item in found.values())
        what = f"output {worst!r} differs between {self.first} and {self.second}: {_shown(found[worst])}"
        bound = bounds[worst].tolerance if worst in bounds else 0.0
        tolerance = (bound, bound * found[worst].scale)
        return failed(Failure(what, marks, found[worst].worst_rel, tolerance=tolerance))

    def script(self, failure: Failure) -> tuple[str, ...]:
        rtol, atol = failure.tolerance
        return (
            *script.opening(self.first, self.second),
            "fails = False",
            f"first = {script.call(self.first)}",
            f"second = {script.call(self.second)}",
            "for a, b in zip(map(np.asarray, first), map(np.asarray, second), strict=True):",
            '    print(a, b, sep="\\n")',
            "    floats = a.dtype.kind in 'fc' and a.dtype == b.dtype and a.shape == b.shape",
            f"    close = floats and np.allclose(a, b, rtol={rtol:.2g}, atol={atol:.2g}, equal_nan=True)",
            "    fails |= not (close or (not floats and a.dtype == b.dtype and np.array_equal(a, b)))",
            "raise SystemExit(fails)",
        )

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status == 1 and ("Traceback" in said) == failure.raises


def _differences(first: Outputs, second: Outputs, bounds: Mapping[str, Rounding]) -> Iterator[tuple[str, Difference]]:
    for name, value in first.items():
        rounding = bounds.get(name)
        found = difference(value, second[name], *(rounding.bounds if rounding else (0.0,)))
        if found.reason:
            yield name, found


def _shown(found: Difference) -> str:
    size = f" (by up to {found.worst_abs:.3g}, at a scale of {found.scale:.3g})" if found.worst_abs else ""
    return found.reason + size
