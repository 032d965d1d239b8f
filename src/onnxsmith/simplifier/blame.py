"""Finds the rewrites after which a result differs, and simplifies without them."""

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
"""Rewrites that may be switched off. A choice: each costs a bisection, and so many wrong rewrites have one cause."""


class Simplify(Protocol):
    """A simplification of one model. The arguments choose only how many rewrites are made, and which are left out."""

    def __call__(
        self, *, limit: float = ..., switched_off: frozenset[Place] = ..., exactness: str | None = ...
    ) -> tuple[ir.Model, Simplification]: ...


@dataclass(frozen=True)
class Cleared:
    """A simplified model that agrees with the original; its part names the rewrites that were switched off."""

    model: ir.Model
    part: Simplification


def without_culprits(
    simplify: Simplify, judge: Callable[[ir.Model], Verification], check: Callable[..., object] = specification.check
) -> Cleared | None:
    """Bisects the journal for the first rewrite after which the model differs, is invalid or does not run; switches
    that rewrite off; repeats until the rest agrees. `check` raises for an invalid model. Returns None if no rewrite is
    to blame: the model then differs even without any rewrite.

    Each culprit takes about log2(rewrites) simplifications with their verifications.
    """
    culprits: list[Entry] = []
    off: frozenset[Place] = frozenset()
    while len(culprits) <= _MOST_CULPRITS:
        model, part = simplify(switched_off=off)
        trouble = _trouble(model, judge, check)
        if not trouble:
            return Cleared(model, replace(part, switched_off=tuple(culprits)))
        good, bad = 0, sum(entry.is_rewrite for entry in part.fired)
        # bisecting needs a good end: with no rewrite at all the model must agree
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
    """Returns why a candidate is wrong; "" if it is right."""
    try:
        check(model, where="the simplified model")
        found = judge(model)
    except OnnxsmithError as error:
        return f"{error.problem.what} {error.problem.why}".strip()
    if found.equal:
        return ""
    bad = next((output for output in found.outputs if not output.equal), None)
    return f"output {bad.name!r} differs: {bad.reason}" if bad else "; ".join(found.notes)
