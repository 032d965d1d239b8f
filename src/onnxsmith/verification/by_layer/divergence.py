"""Finds where two models first differ: the operations with an own error, not the operations that only pass errors on.

Every pair of tensors is compared in the plain run, in which the candidate computes everything from the inputs. A pair
is suspicious if its difference exceeds the inputs' difference by more than one operation may add. The difference may
still be inherited and amplified. So suspicious pairs are re-run on the reference's inputs, all in one pass (the forced
run); a remaining difference is the operation's own. Last, the operation to blame is chosen.

An own error beyond rounding need not be a fault: a rewrite may scale one tensor and undo the scaling in the next
tensor, and both tensors keep their names. Two tests tell faults apart. The first test asks whether the outputs improve
if the error is removed (`verification/by_layer/error_effects.py`). This test decides about the largest errors. The
second test asks whether later tensors agree again if they are recomputed. This test decides about the other errors:
only an error that reaches an output counts. If the reference can be computed in float64, float64 decides which side
lost the digits.

An error slightly above the tolerance is called slight: the tolerance is an estimate from counting, which may be wrong
by a factor. A slight error is blamed only if the outputs differ and improve without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from onnxsmith.base.clock import advance
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.runtimes.base import Feeds
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.error_effects import (
    Effect,
    effect_of,
    left_without,
    refuse_other_than_shapes,
    returns,
)
from onnxsmith.verification.by_layer.error_patterns import pattern
from onnxsmith.verification.by_layer.isolated_runs import Trial
from onnxsmith.verification.by_layer.pair_difference import FINE, Found, Look, plain_look, stands_out, value_difference
from onnxsmith.verification.by_layer.side_outline import Outline
from onnxsmith.verification.by_layer.tap import Tap

Chunks = Sequence[Sequence[Pair]]

_MEASURED = 2.0**-30
"""Holds the accuracy of a relative difference. The scale of the difference is a sum of squares in float64, whose last
digits depend on the order of the elements, for example after a Transpose. A choice: far above 2^-53, far below any
tolerance."""


def diverge(
    reference: Tap, candidate: Tap, chunks: Chunks, feeds: tuple[Feeds, Feeds], *, tolerance: float | None = None
) -> Found:
    """Compares every pair on one input, chunk by chunk. Raises the errors of the sides."""
    pairs = [pair for chunk in chunks for pair in chunk]
    trial = Trial((reference, candidate), pairs, feeds, tolerance=tolerance, keep=len(chunks) == 1)
    found, known = Found(), dict[str, Look]()
    for number, chunk in enumerate(chunks):
        advance("layers", number, len(chunks))
        found.looks += _looked(trial, chunk, known)
    gone = {look.pair.candidate for look in found.looks if look.mismatch}
    if gone:  # a mismatched pair was used as a cut: everything is compared again without it
        mismatched = [look for look in found.looks if look.mismatch]
        kept = [[pair for pair in chunk if pair.candidate not in gone] for chunk in chunks]
        again = diverge(reference, candidate, [chunk for chunk in kept if chunk], feeds, tolerance=tolerance)
        again.looks = sorted([*again.looks, *mismatched], key=lambda look: trial.order[look.pair.candidate])
        return replace(again, runs=again.runs + trial.runs)
    judge(trial, found)
    if found.culprits:
        found.inside = trial.inside(found.culprits[0])
        found.pattern = _pattern(trial, found.culprits[0])
    found.runs = trial.runs
    return found


def _pattern(trial: Trial, culprit: Look) -> str:
    """Describes how a culprit differs from the reference if both compute it from the reference's tensors."""
    if culprit.mismatch or not trial.sides[1].can_force:
        return ""
    name = culprit.pair.candidate
    ours, theirs = trial.computed_from([name], trial.cuts)
    return pattern(ours[name], theirs[name])


def _looked(trial: Trial, chunk: Sequence[Pair], known: dict[str, Look]) -> list[Look]:
    """Compares the pairs of one chunk. `known` holds the results of earlier chunks; the new results are added to it."""
    names = [pair.candidate for pair in chunk]
    ours, plain = trial.reference(names), trial.candidate({}, names)
    trial.note_dtypes(ours, plain)
    trial.measure(names)
    own, inherited = trial.roundings(names, trial.cuts), trial.roundings(names, frozenset())
    looks = [
        plain_look(pair, ours[name], plain[name], own[name], inherited[name])
        for pair, name in zip(chunk, names, strict=True)
    ]
    known.update({look.pair.candidate: look for look in looks})
    for look in looks:
        look.suspicious = look.suspicious and not _is_handed_on(trial, look, known)
    suspicious = [look for look in looks if look.suspicious]
    if suspicious and trial.sides[1].can_force and not any(look.mismatch for look in looks):
        ours, forced = trial.computed_from([look.pair.candidate for look in suspicious], trial.cuts)
        for look in suspicious:
            name = look.pair.candidate
            look.own = value_difference(ours[name], forced[name], look.rounding)
    return looks


def _is_handed_on(trial: Trial, look: Look, known: Mapping[str, Look]) -> bool:
    """Whether a difference is explained by the inputs' differences and one operation's rounding, and all these
    differences are within rounding."""
    if look.rounding.noise:  # a quantiser's error has no known direction: only the forced run can judge it
        return False
    before = [known[name] for name in trial.boundary([look.pair.candidate], trial.cuts) if name in known]
    if not before or look.inherited.reason or any(one.inherited.reason or one.mismatch for one in before):
        return False
    most = look.rounding.tolerance + max(one.inherited.worst_rel for one in before)
    return look.inherited.worst_rel <= most * (1 + _MEASURED)


_STEPS_ON = 6
"""Limits the pairs over which an error is followed, with all other tensors as in the reference. A choice: each pair is
a run."""
_MOST_DECIDED = 8
"""Limits the suspects that are followed, and for which the reference is computed in float64. A choice."""
_SLIGHT = 4.0
"""Names the multiple of its tolerance below which an error is slight. A choice: half the factor 8 of the tolerance."""
_HUGE = 1000.0
"""Names the multiple of its tolerance from which an error is blamed even if no output moves, if both sides compute the
pair by the same operator. Later operations may hide such an error on this input and show it on others. A choice."""
_MOST_EFFECTS = 24
"""Limits the suspects whose effect on the outputs is computed. A choice: each suspect needs two runs."""
_MOST_ALIKE = 64
"""Limits the tensors of one side among which the value of a wrong pair is searched. A choice: one run."""
_MATTERS = 0.1
"""Requires this share of the largest effect on the outputs from the culprit that is named first. A choice."""

Effects = dict[str, Effect]
"""Maps the candidate's name of a tensor to the effect of its error."""


def judge(trial: Trial, found: Found) -> None:
    """Sets the verdict of each look and fills the lists of `found`. The first culprit is the earliest of the culprits
    with a large effect on the outputs. No tensor after a culprit agrees. So errors without a known effect are judged
    without the errors of earlier culprits."""
    effects = _weigh(trial, found)
    _follow(trial, [look for look in found.looks if _is_suspect(look) and not look.verdict], found)
    found.culprits.sort(key=_importance(trial, found.culprits, effects))
    if found.culprits:
        found.left = left_without(trial, found.culprits[0])
    for look in found.looks:
        if not look.verdict:
            look.verdict = "inherited" if look.inherited.reason else "equal"


def _is_suspect(look: Look) -> bool:
    return look.own is not None and bool(look.own.reason)


def _weigh(trial: Trial, found: Found) -> Effects:
    """Decides on suspects in order, by their effect on the outputs. If a tensor turns out to have no counterpart, later
    tensors were computed from a wrong input, so their own errors are measured again without this tensor."""
    differ = any(look.inherited.reason for look in found.looks if look.pair.how == "port")
    strong = any(_is_strong(trial, look) for look in found.looks)
    effects: Effects = {}
    apart = {look.pair.candidate for look in found.looks if _is_apart(look)}
    for look in found.looks:
        if not _is_suspect(look):
            continue
        effect: Effect | None = Effect()
        if (_is_strong(trial, look) or (differ and not strong)) and len(effects) < _MOST_EFFECTS:
            effect = effect_of(trial, look, {one.pair.candidate for one in found.otherwise})
            effects[look.pair.candidate] = effect or Effect()
        # Quantisation errors reach the outputs too: `_follow` tests whether there is more than that.
        harms = effect is not None and ((effect.harms and not look.rounding.noise) or _is_hidden(trial, look, effect))
        seen = look.pair.candidate in apart and _reaches_output(trial, look.pair.candidate, apart)
        is_wrong_pair = harms and not seen and _holds_another(trial, look, found)
        if harms and not is_wrong_pair:
            _decide(trial, look, found)
        elif is_wrong_pair or (effect is not None and effect.helps):
            look.verdict = "computed otherwise"
            found.otherwise.append(look)
            _measure_again(trial, look, found)
        elif not _is_strong(trial, look):
            look.verdict = "own error, slight"
            found.slight.append(look)
    return effects


def _is_apart(look: Look) -> bool:
    """Whether a pair differs in the plain run by more than its own operation may add. An error that reaches no output
    through such pairs is undone by later steps, or its pair is wrong."""
    return bool(look.mismatch or look.inherited.reason) or look.inherited.worst_rel > look.rounding.tolerance


def _is_strong(trial: Trial, look: Look) -> bool:
    return look.severity >= (1.0 if trial.tolerance is not None else _SLIGHT)


def _is_hidden(trial: Trial, look: Look, effect: Effect) -> bool:
    return look.severity >= _HUGE and not effect.helps and trial.is_same_operation(look.pair)


def _holds_another(trial: Trial, look: Look, found: Found) -> bool:
    """Whether the tensor of one side holds what another tensor of the other side holds: the pair is wrong. A tool may
    exchange names, or give the name of a Conv to the Conv that absorbed the Add behind it. Tensors that agree with
    a third one are left out: a Min whose bound is never reached holds what its input holds."""
    names = look.pair.reference, look.pair.candidate
    agreed = [one.pair for one in found.looks if not _is_apart(one)]
    elsewhere = (
        {pair.reference for pair in agreed if pair.candidate != look.pair.candidate},
        {pair.candidate for pair in agreed if pair.reference != look.pair.reference},
    )
    values = trial.reference([names[1]])[names[1]], trial.candidate({}, [names[1]])[names[1]]
    for place, side in enumerate(trial.sides):
        known = side.outline.types.get(names[place])
        if known is None:
            continue
        alike = [
            name
            for name in side.outline.tensors()
            if name != names[place] and name not in elsewhere[place]
            if name in side.outline.types and side.outline.types[name].agrees(known)
        ]
        nearest = sorted(alike, key=lambda name: _distance(side.outline, name, names[place]))[:_MOST_ALIKE]
        theirs = side.values(trial.feeds[place], nearest) if nearest else {}
        trial.runs += bool(nearest)
        held = values[1 - place]
        if any(not value_difference(held, value, look.rounding).reason for value in theirs.values()):
            return True
    return False


def _distance(outline: Outline, name: str, other: str) -> int:
    """Returns how many steps lie between the steps of two tensors."""
    return abs(outline.maker.get(name, 0) - outline.maker.get(other, 0))


def _measure_again(trial: Trial, gone: Look, found: Found) -> None:
    """Measures the own errors of later pairs again, after a pair turned out to be wrong."""
    otherwise = {look.pair.candidate for look in found.otherwise}
    cuts = trial.cuts - otherwise
    after = set(_after(trial, [gone.pair.candidate])) - otherwise
    behind = [look for look in found.looks if look.pair.candidate in after and not look.mismatch]
    names = [look.pair.candidate for look in behind]
    if not names or not trial.sides[1].can_force:
        return
    ours, theirs = trial.computed_from(names, cuts)
    roundings = trial.roundings(names, cuts)
    for look, name in zip(behind, names, strict=True):
        look.rounding = roundings[name]
        look.own = value_difference(ours[name], theirs[name], look.rounding)


def _decide(trial: Trial, look: Look, found: Found) -> None:
    """Blames a pair, unless float64 shows that the candidate is no worse."""
    if look.rounding.tolerance and trial.is_rounding(look):  # with a tolerance of 0 there is one right answer
        look.verdict = "rounding"
        found.rounded.append(look)
    else:
        look.verdict = "own error"
        found.culprits.append(look)


def _importance(trial: Trial, culprits: Sequence[Look], effects: Effects) -> Callable[[Look], tuple[bool, bool, int]]:
    """Returns the sort key of culprits. Culprits with about the largest effect on the outputs come first, in graph
    order; slight ones come last."""
    sizes = {name: effect.size for name, effect in effects.items() if name in {one.pair.candidate for one in culprits}}
    most = max(sizes.values(), default=0.0)

    def key(look: Look) -> tuple[bool, bool, int]:
        small = sizes.get(look.pair.candidate, 0.0) < _MATTERS * most
        return look.severity < _SLIGHT, small, trial.order[look.pair.candidate]

    return key


def _follow(trial: Trial, suspects: list[Look], found: Found) -> None:
    """Decides on suspects by whether later tensors agree again."""
    for _ in range(_MOST_DECIDED):
        suspects = _going_on(trial, suspects, found)
        if not suspects:
            break
        first, *suspects = suspects
        _decide(trial, first, found)
    for look in suspects:
        look.verdict = "own error, not followed"


def _going_on(trial: Trial, suspects: list[Look], found: Found) -> list[Look]:
    """Returns the suspects whose error reaches an output. The other suspects compute a step differently, with the same
    outputs."""
    if not suspects:
        return []
    right = _right_after(trial, {look.pair.candidate for look in (*suspects, *found.otherwise)})
    few = len(suspects) <= _MOST_DECIDED
    kept = []
    for look in suspects:
        if _reaches_output(trial, look.pair.candidate, trial.cuts - right) or (few and returns(trial, look, right)):
            kept.append(look)
        elif few and look.rounding.tolerance and trial.is_rounding(look):
            look.verdict = "rounding"
            found.rounded.append(look)
        else:
            look.verdict = "computed otherwise"
            found.otherwise.append(look)
    return kept


def _right_after(trial: Trial, wrong: set[str]) -> set[str]:
    """Returns the tensors after `wrong` that agree again, if all tensors that the errors do not reach are as in the
    reference. If no tensor agrees again within `_STEPS_ON` pairs, the error counts as reaching further."""
    loose, right = set(wrong), set[str]()
    for _ in range(_STEPS_ON):
        cuts = trial.cuts - loose
        after = [name for name in _after(trial, loose) if name in cuts]
        if not after:
            break
        try:
            ours, theirs = trial.computed_from(after, cuts)
        except OnnxsmithError as error:
            refuse_other_than_shapes(error)
            break  # later tensors do not agree
        roundings = trial.roundings(after, cuts)
        new = {name for name in after if value_difference(ours[name], theirs[name], roundings[name]).reason}
        coarse = [name for name in after if name not in new and roundings[name].unit > FINE]
        if coarse and trial.tolerance is None:
            _, noisy = trial.computed_from(coarse, cuts | wrong, noisy_at=wrong)
            new |= {n for n in coarse if stands_out(ours[n], theirs[n], noisy[n], roundings[n])}
        right = set(after) - new
        if not new:
            break
        loose |= new
    return right


def _after(trial: Trial, names: Collection[str]) -> list[str]:
    """Returns the nearest pairs after `names`, in order."""
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
    """Whether a path leads from a tensor to an output through tensors that all differ."""
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
