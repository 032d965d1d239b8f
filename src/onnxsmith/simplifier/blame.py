"""Finds the rewrite after which a result differs, and does without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import onnx_ir as ir

from onnxsmith.model.files import check as specification
from onnxsmith.problem import OnnxsmithError
from onnxsmith.report.parts.simplification import Entry, Simplification
from onnxsmith.report.parts.verification import Verification
from onnxsmith.simplifier.journal import Place

_MOST_CULPRITS = 16


class Simplify(Protocol):
    """A simplification of one model with everything chosen but how much of it is done."""

    def __call__(
        self, *, limit: float = ..., switched_off: frozenset[Place] = ..., exactness: str | None = ...
    ) -> tuple[ir.Model, Simplification]: ...


@dataclass(frozen=True)
class Mended:
    """A simplified model that agrees with the original, and what was left out of it."""

    model: ir.Model
    part: Simplification


def without_culprits(
    simplify: Simplify, judge: Callable[[ir.Model], Verification], check: Callable[..., object] = specification.check
) -> Mended | None:
    """Bisects the journal for the first rewrite after which the model differs, is invalid or does not run, switches it
    off, and does so again until the rest agrees. `check` raises for what is invalid. None where no rewrite is to blame:
    the model differs from itself.

    Each culprit takes about log2(rewrites) simplifications with their verifications.
    """
    culprits: list[Entry] = []
    off: frozenset[Place] = frozenset()
    while len(culprits) <= _MOST_CULPRITS:
        model, part = simplify(switched_off=off)
        trouble = _trouble(model, judge, check)
        if not trouble:
            return Mended(model, replace(part, switched_off=tuple(culprits)))
        good, bad = 0, sum(entry.is_rewrite for entry in part.fired)
        if _trouble(simplify(limit=0)[0], judge, check):
            return None
        while bad - good > 1:
            middle = (good + bad) // 2
            found = _trouble(simplify(limit=middle, switched_off=off)[0], judge, check)
            good, bad, trouble = (good, middle, found) if found else (middle, bad, trouble)
        culprit = [entry for entry in part.fired if entry.is_rewrite][bad - 1]
        culprits.append(replace(culprit, id=len(culprits), why_not=trouble))
        off |= {(culprit.rule, culprit.where)}
    return None


def _trouble(model: ir.Model, judge: Callable[[ir.Model], Verification], check: Callable[..., object]) -> str:
    """What is wrong with a candidate; empty when nothing is."""
    try:
        check(model, where="the simplified model")
        found = judge(model)
    except OnnxsmithError as error:
        return f"{error.problem.what} {error.problem.why}".strip()
    if found.equal:
        return ""
    bad = next((output for output in found.outputs if not output.equal), None)
    return f"output {bad.name!r} differs: {bad.reason}" if bad else "; ".join(found.notes)
