"""What a verification means for the command that made it."""

from __future__ import annotations

from onnxsmith.problem import Problem
from onnxsmith.report.base import Verdict
from onnxsmith.report.parts.verification import Verification


def verdict(part: Verification, *, asked: bool = True) -> Verdict:
    """Done when both sides agree, or when no verification was asked for."""
    return Verdict.DONE if part.equal or not asked else Verdict.DIFFERENT


def problems(part: Verification, *, asked: bool = True) -> tuple[Problem, ...]:
    """The difference as a problem: the first output that differs, or what is wrong with the interface."""
    if part.equal or not asked:
        return ()
    bad = next((output for output in part.outputs if not output.equal), None)
    what = f"output {bad.name!r} differs: {bad.reason}" if bad else f"the interface differs: {'; '.join(part.notes)}"
    return (
        Problem(
            "verify/different",
            what,
            where=f"{part.candidate}, on {bad.where}" if bad else part.candidate,
            why="it does not compute what the reference computes on this input, by more than rounding explains",
            fix="`onnxsmith explain verify/different` lists the usual causes",
        ),
    )


def ending(part: Verification) -> str:
    """How a headline ends."""
    if not part.verified:
        return "NOT VERIFIED"
    drawn = ", ".join(output.name for output in part.outputs if output.drawn)
    but = f"; drawn at random, so not compared: {drawn}" if drawn else ""
    gaps = "".join(f"; {gap}" for gap in part.untried)
    return f"{'verified' if part.equal else 'DIFFERENT'} on {len(part.runs)} inputs{but}{gaps}"
