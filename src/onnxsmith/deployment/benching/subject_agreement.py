"""Compares the outputs of two subjects once, on the measured input, before subjects are ranked."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.comparison.outputs.comparison_setup import Compared, compared, evidence
from onnxsmith.comparison.outputs.sides import SideSource, under
from onnxsmith.deployment.benching.subject_preparation import Ready
from onnxsmith.deployment.benching.subjects import Subject
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.rounding import asked
from onnxsmith.verification.verify import Side, verify

_BETWEEN_TORCH = 1e-3
"""Limits the difference between a torch module and its compiled form, relative to the output's scale. A choice: a
compiler adds float32 numbers in another order, and without a graph the effect of the order cannot be computed."""


@dataclass(frozen=True)
class Check:
    """Says whether a subject's outputs agree with the lead's: None if this is unknown. `said` is a clause about the
    agreement."""

    equal: bool | None
    said: str


def checked(lead: Ready, other: Ready, feed: Feed, tolerance: float | None) -> Check:
    """Compares the outputs on `feed`, as `compare` does. `tolerance` is relative to an output's scale; None allows the
    differences that rounding explains."""
    if other.subject.target is lead.subject.target and other.subject.on == lead.subject.on:
        return Check(True, "the same model on the same runtime")
    try:
        with ExitStack() as stack:
            read = _read(lead, other, feed, tolerance, stack)
            with read.a.prepare() as first, read.b.prepare() as second, ExitStack() as probes:
                sides = Side(read.a.label, first), Side(read.b.label, under(second, read.b.interface, read.a.interface))
                part = verify(*sides, read.plan, read.tolerances, evidence(read, probes))
    except OnnxsmithError as error:
        kind = error.problem.id
        told = False if kind in ("verify/interface", "verify/outputs-differ") else None
        return Check(told, f"not compared: {error.problem.what} ({kind})")
    if part.equal:
        return Check(True, "equal within rounding" if tolerance is None else f"equal within {tolerance:g}")
    if part.unsure:
        return Check(None, f"no difference found, but {part.unsure[0]}")
    bad = next((output for output in part.outputs if not output.equal), None)
    return Check(False, f"output {bad.name!r} differs: {bad.reason}" if bad else "; ".join(part.notes))


def _read(lead: Ready, other: Ready, feed: Feed, tolerance: float | None, stack: ExitStack) -> Compared:
    read = compared(
        _given(lead.subject),
        _given(other.subject),
        inputs=[feed],
        sizes=None,
        runtime=None,
        generate=False,
        seed=0,
        tolerance=tolerance,
        per_layer=False,
        stack=stack,
    )
    a, b = _on(read.a, lead.subject), _on(read.b, other.subject)
    if tolerance is None and a.model is None and b.model is None:
        read = replace(read, tolerances={port.name: asked(_BETWEEN_TORCH) for port in a.interface.outputs})
    return replace(read, a=a, b=b)


def _given(subject: Subject) -> Any:
    """Returns the subject as an argument of a comparison."""
    return subject.target if subject.is_torch else f"{subject.target}@{subject.on}"


def _on(side: SideSource, subject: Subject) -> SideSource:
    return replace(side, runtime=subject.runtime) if subject.is_torch else side
