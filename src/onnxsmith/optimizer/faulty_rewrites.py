"""Finds the rewrites that make a result differ, and simplifies without them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.edits import Entry, Simplification
from onnxsmith.base.report.parts.verification import REFUSES, OutputCheck, Verification
from onnxsmith.base.words import several
from onnxsmith.graph.files import specification_check as specification
from onnxsmith.optimizer.journal import Place

_MOST_CULPRITS = 16
"""The most rewrites that are switched off. A choice: each costs a bisection, and more faulty rewrites have a common
cause."""


_REFUSED = "the runtime refuses"
_NATIVE = re.compile(r"\s*(Status Message:)?\s*/\S+\.(h|cc|cpp):\d+.*", re.DOTALL)
"""The part of a native message with the source file and function that it comes from."""


class Simplify(Protocol):
    """A simplification of one model. The arguments only choose how many rewrites are made, and which are left out."""

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
    """Bisects the journal for the first rewrite after which the model differs, is invalid or does not run. Switches
    that rewrite off, and repeats until the model agrees. `check` raises for an invalid model. Returns None if the model
    differs even without any rewrite.

    Each faulty rewrite takes about log2(rewrites) simplifications with their verifications.
    """
    culprits: list[Entry] = []
    refused: set[str] = set()
    off: frozenset[Place] = frozenset()
    while len(culprits) <= _MOST_CULPRITS:
        model, part = simplify(switched_off=off)
        trouble = _trouble(model, judge, check)
        if not trouble:
            return Cleared(model, replace(part, switched_off=tuple(culprits)))
        good, bad = 0, sum(entry.is_rewrite for entry in part.fired)
        # bisecting needs one end that agrees: the model without any rewrite
        if _trouble(simplify(limit=0)[0], judge, check):
            return None
        while bad - good > 1:
            middle = (good + bad) // 2
            found = _trouble(simplify(limit=middle, switched_off=off)[0], judge, check)
            good, bad, trouble = (good, middle, found) if found else (middle, bad, trouble)
        culprit = [entry for entry in part.fired if entry.is_rewrite][bad - 1]
        alike = {(culprit.rule, culprit.where)}
        if trouble.startswith(_REFUSED) and culprit.rule in refused:
            # a rewrite that a runtime refuses twice is refused in every layer of a deep model
            alike |= {(entry.rule, entry.where) for entry in part.fired if entry.rule == culprit.rule}
            trouble += f", as at {several(len(alike) - 1, 'other place')}" if len(alike) > 1 else ""
        refused |= {culprit.rule} if trouble.startswith(_REFUSED) else set()
        culprits.append(replace(culprit, id=len(culprits), why_not=trouble))
        off |= alike
    return None


def _trouble(model: ir.Model, judge: Callable[[ir.Model], Verification], check: Callable[..., object]) -> str:
    """Returns why a candidate differs or fails; "" if it agrees."""
    try:
        check(model, where="the simplified model")
        found = judge(model)
    except OnnxsmithError as error:
        return f"{error.problem.what} {error.problem.why}".strip()
    if found.equal:
        return ""
    bad = next((output for output in found.outputs if not output.equal), None)
    if bad is not None and bad.reason.startswith(REFUSES):
        return _refused(bad)
    return f"output {bad.name!r} differs: {bad.reason}" if bad else "; ".join(found.notes)


def _refused(bad: OutputCheck) -> str:
    """Returns a sentence that the runtime refuses an input after a rewrite. Adds the runtime's message, unless the
    input is empty."""
    empty = re.findall(r"[^,\s]+=0(?=,|$)", bad.where)
    if empty:
        said = f"empty inputs after this rewrite ({', '.join(empty)}), which the original accepts"
        return f"{_REFUSED} {said}; with --dim {empty[0].partition('=')[0]}=1, no empty inputs are tried"
    said = _NATIVE.sub("", bad.reason.removeprefix(REFUSES).strip(": "))
    return f"{_REFUSED} an input after this rewrite ({bad.where}) that the original accepts: {said}"
