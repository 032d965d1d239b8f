"""Turns a verification into the verdict, the problem and the headline of a command."""

from __future__ import annotations

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.verification import REFUSES, OutputCheck, Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import several


def verdict(part: Verification, *, asked: bool = True) -> Verdict:
    """Returns DONE if the two sides agree, or if no verification was asked for."""
    if part.equal or not asked:
        return Verdict.DONE
    return Verdict.CANNOT_TELL if part.unsure else Verdict.DIFFERENT


def problems(part: Verification, *, asked: bool = True) -> tuple[Problem, ...]:
    """Returns the problem of a verification that did not pass: the first output that differs, the difference of the
    interfaces, or a check that is too weak to find a difference."""
    if part.equal or not asked:
        return ()
    if part.unsure:
        return (
            Problem(
                "verify/cannot-tell",
                f"the check cannot decide whether the two models are equal: {'; '.join(part.unsure)}",
                where=part.candidate,
                why="no difference was found, but the check would not have noticed a wrong model either",
                fix=_ways(part),
            ),
        )
    bad = next((output for output in part.outputs if not output.equal), None)
    what = f"output {bad.name!r} differs: {bad.reason}" if bad else f"the interface differs: {'; '.join(part.notes)}"
    return (
        Problem(
            "verify/different",
            what,
            where=f"{part.candidate}, on {bad.where}" if bad else part.candidate,
            why=_why(bad, part),
            fix="`onnxsmith explain verify/different` lists the usual causes",
        ),
    )


_UNSEEN = "would have been seen", "would not have been seen", "is no more than rounding"
"""Ends the reasons that are about the model and its inputs alone: another runtime gives the same."""


def _ways(part: Verification) -> str:
    """Returns what may help a check that is too weak. Another runtime is not offered if both sides ran on it, or if the
    reason does not depend on the runtime."""
    ways = "give inputs that the model is made for: --input inputs.npz (in Python inputs=…)"
    on_reference = part.candidate.endswith(f" on {_REFERENCE}")
    if on_reference or all(any(end in why for end in _UNSEEN) for why in part.unsure):
        return ways
    return f'{ways}; or run both models on another runtime: --runtime {_REFERENCE} (Verify(runtime="{_REFERENCE}"))'


_REFERENCE = "reference"


def _why(bad: OutputCheck | None, part: Verification) -> str:
    """Returns why the two do not agree. Where the candidate gave no numbers, none differ."""
    if bad is None:
        return "the two models must have the same inputs and the same outputs"
    if bad.reason.startswith(REFUSES):
        return "the candidate did not run on this input, so that no numbers were compared there"
    if not bad.worst_abs:
        return "rounding cannot explain this: it changes no dtype and no shape, and it adds and removes no values"
    return "on this input, the output differs from the reference by more than rounding explains"


def ending(part: Verification, scope: str = "") -> str:
    """Writes the end of a headline. `scope` says what was compared if that is not the outputs: `up to the edited
    nodes`."""
    gaps = "".join(f"; {gap}" for gap in part.untried)
    if not part.verified:
        return f"NOT VERIFIED{gaps}"
    drawn = ", ".join(output.name for output in part.outputs if output.drawn)
    of = f"{scope}, " if scope else ""
    but = f"; drawn at random, so not compared: {drawn}" if drawn else ""
    if part.unsure:
        return f"CANNOT TELL {of}on {several(len(part.runs), 'input')}: {part.unsure[0]}{but}{gaps}"
    return f"{'verified' if part.equal else 'DIFFERENT'} {of}{part.where_compared}{but}{gaps}"
