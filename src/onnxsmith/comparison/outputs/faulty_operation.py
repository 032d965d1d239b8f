"""Says which operation is to blame, and what to do about it."""

from __future__ import annotations

import shlex
from pathlib import Path

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.layers import Cause, Layers


def blamed(layers: Layers, candidate: str) -> tuple[Problem, ...]:
    """The problem of the first culprit; empty without one. `candidate` is the path of the candidate, "" without one."""
    if not layers.culprits:
        return ()
    first, cause = layers.layer(layers.culprits[0]), layers.cause
    why = []
    if first.own is not None:
        why.append(
            f"computed from the reference's inputs, it is off by {first.own:.2g} of its scale; rounding explains "
            f"{first.allowed:.2g}"
        )
    elif first.reason:
        why.append(f"it differs from the reference's: {first.reason}")
    if cause is not None:
        tried = (
            "all outputs agree" if cause.agrees else f"the outputs are {cause.after:.2g} off, else {cause.before:.2g}"
        )
        why.append(f"the graphs differ there: {cause.said()}; with that undone, {tried}")
    return (
        Problem(
            "compare/first-error",
            f"{first.name} is the first tensor with an error of its own: {first.reason or 'the graphs differ there'}",
            where=f"{first.op} {', '.join(first.steps)}" + (f", from {first.place()}" if first.place() else ""),
            why="; ".join(why),
            fix=_fix(cause, candidate),
        ),
    )


def _fix(cause: Cause | None, candidate: str) -> str:
    """What to do about a culprit: a patch that undoes its cause where there is one."""
    if cause is None or not cause.agrees:
        return "compare the attributes and weights of this node with the reference's"
    if not cause.patch or not candidate:
        return f"undo at {cause.op} {cause.node}: {'; '.join(cause.changes)}"
    lines = " ".join(shlex.quote(line) for line in cause.patch.splitlines())
    command = ["onnxsmith", "edit", candidate, "fix.toml", "-o", f"{Path(candidate).stem}_fixed.onnx"]
    return f"printf '%s\\n' {lines} > fix.toml; {shlex.join(command)}"
