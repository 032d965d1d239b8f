"""Finds where two models first differ: the operations with an own error, not the operations that only pass errors on.

Every pair of tensors is compared in the plain run, in which the candidate computes everything from the inputs. A pair
is suspicious if its difference exceeds the inputs' difference by more than one operation may add. The difference may
still be inherited and amplified. So suspicious pairs are re-run on the reference's inputs, all in one pass (the forced
run); a remaining difference is the operation's own. `verification/by_layer/culprits.py` then decides which operation is
to blame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnxsmith.base.clock import advance
from onnxsmith.runtimes.base import Feeds
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.culprits import judge
from onnxsmith.verification.by_layer.error_patterns import pattern
from onnxsmith.verification.by_layer.isolated_runs import Trial
from onnxsmith.verification.by_layer.pair_difference import Found, Look, plain_look, value_difference
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
