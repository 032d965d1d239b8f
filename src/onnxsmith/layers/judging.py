"""Which of the pairs that err by themselves are to blame.

An own error beyond rounding need not be a fault: a rewrite may scale one tensor and undo it in the next, and both are
called what they were. So the pairs that err are let go of and what comes after them is computed again: where that
agrees, nothing was wrong but the pairing. Only an error that goes on to an output counts. Where the reference can be
computed in float64 that decides which side lost the digits.
"""

from __future__ import annotations

from collections.abc import Collection

from onnxsmith.layers.look import Found, Look, held
from onnxsmith.layers.noise import FINE, stands_out
from onnxsmith.layers.trial import Trial

_STEPS_ON = 6
"""How many pairs further an error is followed with everything else as in the reference."""
_MOST_DECIDED = 8
"""Suspects for which the reference is computed in float64."""


def judge(trial: Trial, found: Found) -> None:
    """Says of each look what it is. The first suspect in order whose error goes on to an output is a culprit; what
    comes after is judged without it, for behind it nothing agrees any more."""
    suspects = [look for look in found.looks if look.own is not None and look.own.reason]
    for _ in range(_MOST_DECIDED):
        suspects = _going_on(trial, suspects, found)
        if not suspects:
            break
        first, *suspects = suspects
        if first.rounding.tolerance and trial.is_rounding(first):  # what rounds rightly has but one right answer
            first.verdict = "rounding"
            found.rounded.append(first)
        else:
            first.verdict = "own error"
            found.culprits.append(first)
    for look in suspects:
        look.verdict = "own error, not followed"
    for look in found.looks:
        if not look.verdict:
            look.verdict = "inherited" if look.inherited.reason else "equal"


def _going_on(trial: Trial, suspects: list[Look], found: Found) -> list[Look]:
    """The suspects whose error goes on to an output; the others are computed otherwise and right in the end."""
    if not suspects:
        return []
    wrong = trial.cuts - _right_after(trial, {look.pair.candidate for look in suspects})
    kept = []
    for look in suspects:
        if _reaches_output(trial, look.pair.candidate, wrong):
            kept.append(look)
        else:
            look.verdict = "computed otherwise"
            found.otherwise.append(look)
    return kept


def _right_after(trial: Trial, wrong: set[str]) -> set[str]:
    """What comes out right again behind `wrong`, while everything that is not reached is as in the reference. An error
    that is followed for `_STEPS_ON` pairs without an end is taken to go on."""
    loose, right = set(wrong), set[str]()
    for _ in range(_STEPS_ON):
        cuts = trial.cuts - loose
        after = [name for name in _after(trial, loose) if name in cuts]
        if not after:
            break
        ours, theirs = trial.behind(after, cuts)
        roundings = trial.roundings(after, cuts)
        new = {name for name in after if held(ours[name], theirs[name], roundings[name]).reason}
        coarse = [name for name in after if name not in new and roundings[name].unit > FINE]
        if coarse and trial.tolerance is None:
            _, noisy = trial.behind(coarse, cuts | wrong, shaken_at=wrong)
            new |= {n for n in coarse if stands_out(ours[n], theirs[n], noisy[n], roundings[n])}
        right = set(after) - new
        if not new:
            break
        loose |= new
    return right


def _after(trial: Trial, names: Collection[str]) -> list[str]:
    """The nearest pairs after `names`, in order."""
    outline = trial.sides[1].outline
    found: set[str] = set()
    queue, seen = list(names), set(names)
    while queue:
        for reader in outline.readers.get(queue.pop(), ()):
            for made in outline.steps[reader].outputs:
                if made in seen:
                    continue
                seen.add(made)
                if made in trial.cuts:
                    found.add(made)
                else:
                    queue.append(made)
    return sorted(found, key=trial.order.__getitem__)


def _reaches_output(trial: Trial, name: str, wrong: Collection[str]) -> bool:
    """Whether a way leads from a tensor to an output on which no pair agrees."""
    outline = trial.sides[1].outline
    outputs = set(outline.outputs)
    queue, seen = [name], {name}
    while queue:
        here = queue.pop()
        if here in outputs:
            return True
        for reader in outline.readers.get(here, ()):
            for made in outline.steps[reader].outputs:
                if made not in seen and (made not in trial.cuts or made in wrong):
                    seen.add(made)
                    queue.append(made)
    return False
