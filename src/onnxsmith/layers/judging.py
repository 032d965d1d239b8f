"""Which of the pairs that err by themselves are to blame.

An own error beyond rounding need not be a fault: a rewrite may scale one tensor and undo it in the next, and both are
called what they were. Two questions tell them apart. What do the outputs gain when the error is taken out
(`layers/swapping.py`)? It is asked of the largest errors, and its answer counts. Does what comes after the error agree
again when it is computed anew? It is asked of the others: only an error that goes on to an output counts. Where the
reference can be computed in float64 that decides which side lost the digits.

An error of little more than is allowed is slight: the allowance is counted, and a count may be off by a factor. It is
blamed only where the outputs differ and are better off without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from onnxsmith.layers.look import Found, Look, held
from onnxsmith.layers.noise import FINE, stands_out
from onnxsmith.layers.swapping import Effect, effect_of, left_without, most_severe
from onnxsmith.layers.trial import Trial

_STEPS_ON = 6
"""How many pairs further an error is followed with everything else as in the reference."""
_MOST_DECIDED = 8
"""Suspects for which the reference is computed in float64, and for which their effect on the outputs is."""
_SLIGHT = 4.0
"""An error of fewer times what is allowed is slight."""
_MATTERS = 0.1
"""What has less than this part of the largest effect on the outputs is not named first."""

Effects = dict[int, Effect]
"""By the identity of a look."""


def judge(trial: Trial, found: Found) -> None:
    """Says of each look what it is. Named first is the first in order of those that matter for the outputs; of those
    whose effect is not known, what comes after the first is judged without it, for behind it nothing agrees any
    more."""
    suspects = [look for look in found.looks if look.own is not None and look.own.reason]
    strong = [look for look in suspects if trial.tolerance is not None or look.severity >= _SLIGHT]
    differ = any(look.inherited.reason for look in found.looks if look.pair.how == "port")
    asked = most_severe(strong or (suspects if differ else []), _MOST_DECIDED)
    effects: Effects = {id(look): effect_of(trial, look) for look in asked}
    for look in suspects:
        effect = effects.get(id(look), Effect())
        if effect.harms:
            _decide(trial, look, found)
        elif effect.helps:
            look.verdict = "computed otherwise"
            found.otherwise.append(look)
        elif look not in strong:
            look.verdict = "own error, slight"
            found.slight.append(look)
    _follow(trial, [look for look in suspects if not look.verdict], found)
    found.culprits.sort(key=_importance(trial, found.culprits, effects))
    if found.culprits:
        left = left_without(trial, found.culprits[0])
        found.left = left.present, left.absent
    for look in found.looks:
        if not look.verdict:
            look.verdict = "inherited" if look.inherited.reason else "equal"


def _decide(trial: Trial, look: Look, found: Found) -> None:
    """Names a pair, or lets it go where float64 says that the candidate is no worse."""
    if look.rounding.tolerance and trial.is_rounding(look):  # what rounds rightly has but one right answer
        look.verdict = "rounding"
        found.rounded.append(look)
    else:
        look.verdict = "own error"
        found.culprits.append(look)


def _importance(trial: Trial, culprits: Sequence[Look], effects: Effects) -> Callable[[Look], tuple[bool, bool, int]]:
    """Those that move the outputs about as far as any does come first, in order; slight ones last."""
    sizes = {id(look): effects[id(look)].size for look in culprits if id(look) in effects}
    most = max(sizes.values(), default=0.0)

    def key(look: Look) -> tuple[bool, bool, int]:
        small = sizes.get(id(look), 0.0) < _MATTERS * most
        return look.severity < _SLIGHT, small, trial.order[look.pair.candidate]

    return key


def _follow(trial: Trial, suspects: list[Look], found: Found) -> None:
    """Decides on suspects by whether what comes after them agrees again."""
    for _ in range(_MOST_DECIDED):
        suspects = _going_on(trial, suspects, found)
        if not suspects:
            break
        first, *suspects = suspects
        _decide(trial, first, found)
    for look in suspects:
        look.verdict = "own error, not followed"


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
