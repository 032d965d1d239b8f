"""Combines the comparisons at two optimisation levels of one runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.verification.explore import Plan, Run

_MOST = 4
"""Limits the inputs that are compared at the second level. A choice: the base, other values, and two other sizes."""


def spread(runs: Sequence[Run]) -> list[Run]:
    """Returns a few of the runs, with different values and sizes: the first run, the last run, and some between."""
    if len(runs) <= _MOST:
        return list(runs)
    return [runs[index * (len(runs) - 1) // (_MOST - 1)] for index in range(_MOST)]


def on_some(plan: Plan, runs: Sequence[Run]) -> Plan:
    """Returns the plan for the second level: the inputs of a few of the runs."""
    return replace(plan, given=tuple(run.feed for run in spread(runs)), generate=False)


def again_on_some(plan: Plan, runs: Sequence[Run]) -> Plan:
    """Returns the plan for the second level if the reference is the same at both levels: a few of its runs."""
    return replace(plan, given=(), answered=tuple(spread(runs)), generate=False)


def both_levels(main: Verification, other: Verification, note: str) -> Verification:
    """Combines comparisons at two optimisation levels: each output gets the worse result. `other` was made on some of
    the inputs of `main`."""
    outputs = tuple(
        theirs if (not theirs.equal, theirs.worst_rel) > (not ours.equal, ours.worst_rel) else ours
        for ours, theirs in zip(main.outputs, other.outputs, strict=True)
    )
    return replace(
        main,
        equal=main.equal and other.equal,
        outputs=outputs,
        notes=tuple(dict.fromkeys((*main.notes, *other.notes, note))),
        unsure=() if main.differs or other.differs else tuple(dict.fromkeys((*main.unsure, *other.unsure))),
    )


def agreement_at_both(
    runtime: str, main: Verification, other: Verification, words: tuple[str, str], *, apart: str = ""
) -> str:
    """Writes the note on both comparisons. `words` name the levels: off, on. `apart` says how the outputs of `other`
    agree, if more than rounding is to be expected."""
    first, second = (_LEVELS[word] for word in words)
    of, said = f"the optimisations of {runtime}", _agree(agreement(main))
    again, count = _agree(apart or agreement(other)), len(other.runs)
    some = f" on {count} of the inputs" if count < len(main.runs) else ""
    if said == again:
        return f"the outputs {said} {first} and {second} {of}" + (f" ({second} them{some})" if some else "")
    return f"the outputs {said} {first} {of}; {second} these optimisations{some}, the outputs {again}"


_LEVELS = {"on": "with", "off": "without"}


def _agree(how: str) -> str:
    return "differ" if how == "not" else f"agree {how}"


def agreement(part: Verification) -> str:
    """Describes in words how closely the outputs of a comparison agree."""
    if all(output.drawn for output in part.outputs) and part.outputs and not part.differs:
        return "in dtypes and shapes"
    if part.exact:
        return "to the bit"
    return "within rounding" if not part.differs else "not"
