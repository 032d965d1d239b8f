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

from onnxsmith.layers.isolated_runs import Trial
from onnxsmith.layers.noise import FINE, stands_out
from onnxsmith.layers.pair_difference import Found, Look, held
from onnxsmith.layers.swapping import Effect, effect_of, left_without

_STEPS_ON = 6
"""How many pairs further an error is followed with everything else as in the reference."""
_MOST_DECIDED = 8
"""Suspects that are followed, and for which the reference is computed in float64."""
_SLIGHT = 4.0
"""An error of fewer times what is allowed is slight."""
_HUGE = 1000.0
"""An error of so many times what is allowed, of one operation that both sides compute by the same operator, is named
though no output moves: what comes behind may hide it on this input and show it on others."""
_MOST_EFFECTS = 24
"""Suspects whose effect on the outputs is computed, in two runs each."""
_MATTERS = 0.1
"""What has less than this part of the largest effect on the outputs is not named first."""

Effects = dict[str, Effect]
"""By the candidate's name of a tensor."""


def judge(trial: Trial, found: Found) -> None:
    """Says of each look what it is. Named first is the first in order of those that matter for the outputs; of those
    whose effect is not known, what comes after the first is judged without it, for behind it nothing agrees any
    more."""
    effects = _weigh(trial, found)
    _follow(trial, [look for look in found.looks if _is_suspect(look) and not look.verdict], found)
    found.culprits.sort(key=_importance(trial, found.culprits, effects))
    if found.culprits:
        left = left_without(trial, found.culprits[0])
        found.left = left.present, left.absent
    for look in found.looks:
        if not look.verdict:
            look.verdict = "inherited" if look.inherited.reason else "equal"


def _is_suspect(look: Look) -> bool:
    return look.own is not None and bool(look.own.reason)


def _weigh(trial: Trial, found: Found) -> Effects:
    """Decides on suspects by what they do to the outputs, in order. What follows a tensor that has no counterpart after
    all was given something else: its own error is measured again, without that."""
    differ = any(look.inherited.reason for look in found.looks if look.pair.how == "port")
    strong = any(_is_strong(trial, look) for look in found.looks)
    effects: Effects = {}
    for look in found.looks:
        if not _is_suspect(look):
            continue
        effect: Effect | None = Effect()
        if (_is_strong(trial, look) or (differ and not strong)) and len(effects) < _MOST_EFFECTS:
            effect = effect_of(trial, look, {one.pair.candidate for one in found.otherwise})
            effects[look.pair.candidate] = effect or Effect()
        # what quantisers err by goes on to the outputs, too: whether it is more than that is asked by following it
        harms = effect is not None and effect.harms and not look.rounding.noise
        if harms or (effect is not None and _is_hidden(trial, look, effect)):
            _decide(trial, look, found)
        elif effect is not None and effect.helps:
            look.verdict = "computed otherwise"
            found.otherwise.append(look)
            _measure_again(trial, look, found)
        elif not _is_strong(trial, look):
            look.verdict = "own error, slight"
            found.slight.append(look)
    return effects


def _is_strong(trial: Trial, look: Look) -> bool:
    return look.severity >= (1.0 if trial.tolerance is not None else _SLIGHT)


def _is_hidden(trial: Trial, look: Look, effect: Effect) -> bool:
    return look.severity >= _HUGE and not effect.helps and trial.is_same_operation(look.pair)


def _measure_again(trial: Trial, gone: Look, found: Found) -> None:
    """What the pairs right after one that is none err by themselves."""
    otherwise = {look.pair.candidate for look in found.otherwise}
    cuts = trial.cuts - otherwise
    after = set(_after(trial, [gone.pair.candidate])) - otherwise
    behind = [look for look in found.looks if look.pair.candidate in after and not look.mismatch]
    names = [look.pair.candidate for look in behind]
    if not names or not trial.sides[1].can_force:
        return
    ours, theirs = trial.behind(names, cuts)
    roundings = trial.roundings(names, cuts)
    for look, name in zip(behind, names, strict=True):
        look.rounding = roundings[name]
        look.own = held(ours[name], theirs[name], look.rounding)


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
    sizes = {name: effect.size for name, effect in effects.items() if name in {one.pair.candidate for one in culprits}}
    most = max(sizes.values(), default=0.0)

    def key(look: Look) -> tuple[bool, bool, int]:
        small = sizes.get(look.pair.candidate, 0.0) < _MATTERS * most
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
    wrong = trial.cuts - _right_after(trial, {look.pair.candidate for look in (*suspects, *found.otherwise)})
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
