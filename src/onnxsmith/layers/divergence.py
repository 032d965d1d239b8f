"""Where two models part: the operations that err by themselves, apart from those that hand on what others did.

Every pair of tensors is looked at twice. In the plain run the candidate computes everything from the inputs, and what
differs may have been inherited. In the forced run every operation is given what the reference has in the place of its
inputs, all in one pass, so that what differs then is the operation's own.

An own error beyond rounding need not be a fault: a rewrite may scale one tensor and undo it in the next, and both are
called what they were. So the pairs that err are let go of and what comes after them is computed again: where that
agrees, nothing was wrong but the pairing. Only an error that goes on to an output counts. Where the reference can be
computed in float64 that decides which side lost the digits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onnxsmith.clock import advance
from onnxsmith.comparison.rounding import Rounding, asked
from onnxsmith.comparison.tensors import Difference, difference, is_float
from onnxsmith.layers.alignment import Alignment, Pair
from onnxsmith.layers.noise import FINE, shaken, stands_out
from onnxsmith.layers.tap import Tap, Values
from onnxsmith.metrics.base import measures, widen
from onnxsmith.metrics.max_rel import rms
from onnxsmith.runtimes.base import Feeds, Value

_STEPS_ON = 6
"""How many pairs further an error is followed with everything else as in the reference."""
_COARSE = 2.0**-8
"""Unit roundoff of bfloat16, the coarsest dtype in which whole networks are computed."""
_MOST_DECIDED = 8
"""Suspects for which the reference is computed in float64."""


@dataclass
class Look:
    """One pair: how it differs in the plain run, and by itself. `own` is None where nothing could be given to the
    side."""

    pair: Pair
    inherited: Difference
    own: Difference | None
    rounding: Rounding
    """What an operation may err by itself."""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    mismatch: str = ""
    """Why it is no pair after all."""
    nonfinite: tuple[int, int] = (0, 0)
    """NaN and infinite elements, in the reference and in the candidate."""
    verdict: str = ""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class Found:
    """All pairs that were looked at, in the candidate's order. `culprits` err by themselves, and an output shows it."""

    looks: list[Look] = field(default_factory=list)
    culprits: list[Look] = field(default_factory=list)
    otherwise: list[Look] = field(default_factory=list)
    """Pairs that differ by themselves and whose difference is undone before any output."""
    rounded: list[Look] = field(default_factory=list)
    """Pairs of which float64 says that the reference lost the digits, or neither side is worse."""
    runs: int = 0

    @property
    def first_nonfinite(self) -> Look | None:
        """The first tensor of the candidate that is not finite where the reference is."""
        return next((look for look in self.looks if look.nonfinite[1] > look.nonfinite[0]), None)


class Divergence:
    """One input, two sides, and what is paired of them."""

    def __init__(
        self,
        reference: Tap,
        candidate: Tap,
        alignment: Alignment,
        feeds: tuple[Feeds, Feeds],
        *,
        chunks: Sequence[Sequence[Pair]] | None = None,
        tolerance: float | None = None,
    ) -> None:
        self._tolerance = tolerance
        self._sides = reference, candidate
        self._feeds = feeds
        self._pairs = list(alignment.pairs)
        self._chunks = list(chunks) if chunks is not None else [self._pairs]
        self._by_candidate = {pair.candidate: pair for pair in self._pairs}
        self._cuts = {pair.candidate for pair in self._pairs}
        self._runs = 0
        self._converted: set[str] = set()
        """Tensors of the candidate whose floats have another width than the reference's."""
        self._kept: Values = {}
        """The reference's tensors, where all that is looked at fits in one chunk."""

    def find(self) -> Found:
        """Looks at every pair. Raises what the sides raise when they fail."""
        found = Found()
        for number, chunk in enumerate(self._chunks):
            advance("layers", number, len(self._chunks))
            found.looks += self._looked(chunk)
        mismatched = [look for look in found.looks if look.mismatch]
        if mismatched:
            found.looks = [look for look in found.looks if not look.mismatch]
            again = self._without({look.pair.candidate for look in mismatched})
            anew = again.find()
            anew.looks = sorted([*anew.looks, *mismatched], key=lambda look: self._order[look.pair.candidate])
            return replace(anew, runs=anew.runs + self._runs)
        self._judge(found)
        found.runs = self._runs
        return found

    @property
    def _order(self) -> Mapping[str, int]:
        return {pair.candidate: number for number, pair in enumerate(self._pairs)}

    def _without(self, gone: Collection[str]) -> Divergence:
        kept = [[pair for pair in chunk if pair.candidate not in gone] for chunk in self._chunks]
        rest = Alignment(tuple(pair for pair in self._pairs if pair.candidate not in gone), (), (), 0.0)
        chunks = [chunk for chunk in kept if chunk]
        return Divergence(*self._sides, rest, self._feeds, chunks=chunks, tolerance=self._tolerance)

    def _looked(self, chunk: Sequence[Pair]) -> list[Look]:
        candidate = self._sides[1]
        names = [pair.candidate for pair in chunk]
        given = self._given(names, self._cuts)
        wanted = dict.fromkeys(
            [pair.reference for pair in chunk] + [self._by_candidate[name].reference for name in given]
        )
        ours = self._reference(tuple(wanted))
        plain = self._candidate({}, names)
        forced: Values = {}
        if candidate.can_force and not any(_mismatch(ours[p.reference], plain[p.candidate]) for p in chunk):
            handed = {name: ours[self._by_candidate[name].reference] for name in given}
            forced = self._candidate(handed, names)
        for pair in chunk:
            if getattr(ours[pair.reference], "dtype", None) != getattr(plain[pair.candidate], "dtype", None):
                self._converted.add(pair.candidate)
        for name in (*names, *given):
            self._scaled(name, ours[self._by_candidate[name].reference])
        own = self._roundings(names, self._cuts)
        inherited = self._roundings(names, frozenset())
        return [
            _look(
                pair,
                ours[pair.reference],
                plain[pair.candidate],
                forced.get(pair.candidate),
                own,
                inherited,
                bool(forced),
            )
            for pair in chunk
        ]

    def _given(self, names: Collection[str], cuts: Collection[str]) -> list[str]:
        """The cuts that the steps before `names` read."""
        outline = self._sides[1].outline
        cuts = frozenset(cuts)
        return list(dict.fromkeys(read for name in names for read in outline.segment(name, cuts)[1] if read in cuts))

    def _scaled(self, name: str, value: Value) -> None:
        """Keeps the scale of a tensor for a side that quantises it and has to say how much that explains."""
        for side, own in zip(self._sides, (self._by_candidate[name].reference, name), strict=True):
            if side.scales is not None and own not in side.scales and isinstance(value, np.ndarray):
                side.scales[own] = rms(widen(value)) if is_float(value) and value.size else 0.0

    def _reference(self, names: Sequence[str]) -> Values:
        """What the reference computes, and the inputs that have a counterpart."""
        given = {name: self._feeds[0][name] for name in names if name in self._feeds[0]}
        if given:
            rest = [name for name in names if name not in given]
            return {**given, **(self._reference(rest) if rest else {})}
        if not all(name in self._kept for name in names):
            self._runs += 1
            values = self._sides[0].values(self._feeds[0], names)
            if len(self._chunks) > 1:
                return values
            self._kept |= values
        return {name: self._kept[name] for name in names}

    def _candidate(self, given: Mapping[str, Value], names: Sequence[str]) -> Values:
        self._runs += 1
        return self._sides[1].forced(self._feeds[1], given, names)

    def _roundings(self, names: Sequence[str], cuts: Collection[str]) -> dict[str, Rounding]:
        """By the candidate's names: the wider of what the two sides allow."""
        if self._tolerance is not None:
            return dict.fromkeys(names, asked(self._tolerance))
        pairs = [self._by_candidate[name] for name in names]
        theirs = self._sides[1].roundings(cuts, names)
        to_reference = {self._by_candidate[cut].reference for cut in cuts}
        ours = self._sides[0].roundings(to_reference, [pair.reference for pair in pairs])
        found = {}
        for pair in pairs:
            both = [known[name] for known, name in ((ours, pair.reference), (theirs, pair.candidate)) if name in known]
            found[pair.candidate] = max(both, key=lambda one: one.tolerance) if both else self._guess(pair, cuts)
            if found[pair.candidate].tolerance == 0 and self._is_converted(pair.candidate, cuts):
                found[pair.candidate] = replace(found[pair.candidate], terms=1, depth=1, unit=_COARSE)
        return found

    def _is_converted(self, name: str, cuts: Collection[str]) -> bool:
        """Whether something that the steps before a tensor are given has been rounded for them."""
        return not self._converted.isdisjoint(self._sides[1].outline.segment(name, frozenset(cuts))[1])

    def _guess(self, pair: Pair, cuts: Collection[str]) -> Rounding:
        """Where neither side is a graph of ONNX: each step sums as many terms as one of unknown length."""
        steps = len(self._sides[1].outline.segment(pair.candidate, frozenset(cuts))[0]) or 1
        return Rounding(terms=1024 * steps, depth=steps, unit=2.0**-24)

    def _judge(self, found: Found) -> None:
        """Says of each look what it is. The first suspect in order whose error goes on to an output is a culprit; what
        comes after is judged without it, for behind it nothing agrees any more."""
        self._acquit(found)
        suspects = [look for look in found.looks if look.own is not None and look.own.reason]
        for _ in range(_MOST_DECIDED):
            suspects = self._going_on(suspects, found)
            if not suspects:
                break
            first, *suspects = suspects
            if first.rounding.tolerance and self._is_rounding(first):  # what rounds rightly has but one right answer
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

    def _acquit(self, found: Found) -> None:
        """What is equal to the bit in the plain run, made from what is equal to the bit, has no error of its own: given
        the same values as inputs, a runtime may fuse otherwise and take another kernel, which rounds otherwise."""
        outline = self._sides[1].outline
        equal = {
            look.pair.candidate for look in found.looks if not look.inherited.reason and look.inherited.worst_rel == 0
        }
        for look in found.looks:
            name = look.pair.candidate
            if look.own is not None and look.own.reason and name in equal:
                before = outline.segment(name, self._cuts)[1]
                if all(read in equal or read not in self._cuts for read in before):
                    look.own = look.inherited

    def _going_on(self, suspects: list[Look], found: Found) -> list[Look]:
        """The suspects whose error goes on to an output; the others are computed otherwise and right in the end."""
        if not suspects:
            return []
        wrong = self._cuts - self._right_after({look.pair.candidate for look in suspects})
        kept = []
        for look in suspects:
            if self._reaches_output(look.pair.candidate, wrong):
                kept.append(look)
            else:
                look.verdict = "computed otherwise"
                found.otherwise.append(look)
        return kept

    def _right_after(self, wrong: set[str]) -> set[str]:
        """What comes out right again behind `wrong`, while everything that is not reached is as in the reference. An
        error that is followed for `_STEPS_ON` pairs without an end is taken to go on."""
        loose, right = set(wrong), set[str]()
        for _ in range(_STEPS_ON):
            cuts = self._cuts - loose
            after = [name for name in self._after(loose) if name in cuts]
            if not after:
                break
            ours, theirs = self._behind(after, cuts)
            roundings = self._roundings(after, cuts)
            new = {name for name in after if held(ours[name], theirs[name], roundings[name]).reason}
            coarse = [name for name in after if name not in new and roundings[name].unit > FINE]
            if coarse and self._tolerance is None:
                _, noisy = self._behind(coarse, cuts | wrong, shaken_at=wrong)
                new |= {n for n in coarse if stands_out(ours[n], theirs[n], noisy[n], roundings[n])}
            right = set(after) - new
            if not new:
                break
            loose |= new
        return right

    def _behind(
        self, names: Sequence[str], cuts: Collection[str], shaken_at: Collection[str] = ()
    ) -> tuple[Values, Values]:
        """`names` of both sides, by the candidate's names; of the candidate with what the reference has at `cuts`, with
        as much noise as rounding explains in those of `shaken_at`."""
        given = self._given(names, cuts)
        wanted = dict.fromkeys(self._by_candidate[name].reference for name in (*names, *given))
        ours = self._reference(tuple(wanted))
        handed = {name: ours[self._by_candidate[name].reference] for name in given}
        shaking = [name for name in given if name in shaken_at]
        roundings = self._roundings(shaking, self._cuts)
        handed |= {name: shaken(handed[name], roundings[name], name) for name in shaking}
        theirs = self._candidate(handed, names)
        return {name: ours[self._by_candidate[name].reference] for name in names}, theirs

    def _after(self, names: Collection[str]) -> list[str]:
        """The nearest pairs after `names`, in order."""
        outline = self._sides[1].outline
        found: set[str] = set()
        queue, seen = list(names), set(names)
        while queue:
            for reader in outline.readers.get(queue.pop(), ()):
                for made in outline.steps[reader].outputs:
                    if made in seen:
                        continue
                    seen.add(made)
                    if made in self._cuts:
                        found.add(made)
                    else:
                        queue.append(made)
        return sorted(found, key=self._order.__getitem__)

    def _reaches_output(self, name: str, wrong: Collection[str]) -> bool:
        """Whether a way leads from a tensor to an output on which no pair agrees."""
        outline = self._sides[1].outline
        outputs = set(outline.outputs)
        queue, seen = [name], {name}
        while queue:
            here = queue.pop()
            if here in outputs:
                return True
            for reader in outline.readers.get(here, ()):
                for made in outline.steps[reader].outputs:
                    if made not in seen and (made not in self._cuts or made in wrong):
                        seen.add(made)
                        queue.append(made)
        return False

    def _is_rounding(self, look: Look) -> bool:
        """Whether the candidate is no further from the reference in float64 than the reference itself, or rounding."""
        reference = self._sides[0]
        pair = look.pair
        names = {one.reference: one for one in self._pairs}
        boundary = [name for name in reference.outline.segment(pair.reference, names.keys())[1] if name in names]
        before = self._given([pair.candidate], self._cuts)
        wanted = dict.fromkeys([pair.reference, *boundary, *(self._by_candidate[name].reference for name in before)])
        ours = self._reference(tuple(wanted))
        if pair.reference in self._feeds[0]:
            return False
        truth = reference.exact(self._feeds[0], {name: ours[name] for name in boundary}, pair.reference)
        if not isinstance(truth, np.ndarray) or truth.dtype.kind not in "fc":
            return False
        handed = {name: ours[self._by_candidate[name].reference] for name in before}
        theirs = self._candidate(handed, [pair.candidate])[pair.candidate]
        own = difference(truth, widen(np.asarray(ours[pair.reference])), np.inf)
        if own.reason:
            return False
        tolerance = max(look.rounding.tolerance, own.worst_rel)
        return not difference(truth, widen(np.asarray(theirs)), tolerance, look.rounding.floor).reason


def held(reference: Value, candidate: Value, rounding: Rounding) -> Difference:
    """Two values of one tensor; floats of different widths are held to each other as numbers."""
    arrays = isinstance(reference, np.ndarray) and isinstance(candidate, np.ndarray)
    if arrays and not _mismatch(reference, candidate):
        reference, candidate = _alike(reference, candidate)
        ours, theirs = np.asarray(reference), np.asarray(candidate)
        if rounding.levels and not is_float(ours) and _levels(ours, theirs) <= rounding.levels:
            return Difference(compared=ours.size)
    return difference(reference, candidate, *rounding.bounds)


def _levels(reference: Any, candidate: Any) -> float:
    """How far apart integers are at most."""
    return float(np.max(np.abs(widen(reference) - widen(candidate)), initial=0.0))


def _alike(reference: Value, candidate: Value) -> tuple[Value, Value]:
    ours, theirs = np.asarray(reference), np.asarray(candidate)
    return (ours, theirs) if ours.dtype == theirs.dtype else (widen(ours), widen(theirs))


def _mismatch(reference: Value, candidate: Value) -> str:
    if isinstance(reference, list) or isinstance(candidate, list) or reference is None or candidate is None:
        return "" if type(reference) is type(candidate) else "one side is a tensor, the other is none"
    if reference.shape != candidate.shape:
        return f"shape {list(reference.shape)} here, {list(candidate.shape)} there"
    if reference.dtype != candidate.dtype and not (is_float(reference) and is_float(candidate)):
        return f"dtype {reference.dtype} here, {candidate.dtype} there"
    return ""


def _look(
    pair: Pair,
    ours: Value,
    plain: Value,
    forced: Value,
    own: Mapping[str, Rounding],
    inherited: Mapping[str, Rounding],
    was_forced: bool,
) -> Look:
    mismatch = "" if pair.how == "port" else _mismatch(ours, plain)
    name = pair.candidate
    look = Look(pair, Difference(), None, own[name], mismatch=mismatch)
    if isinstance(ours, np.ndarray):
        look.shape, look.dtype = tuple(ours.shape), ours.dtype.name
    if mismatch:
        return look
    look.inherited = held(ours, plain, inherited[name])
    look.own = held(ours, forced, own[name]) if was_forced else None
    look.nonfinite = _nonfinite(ours), _nonfinite(plain)
    says_something = look.inherited.reason or pair.how == "port"  # of the rest there is little to say, in much time
    if says_something and isinstance(ours, np.ndarray) and isinstance(plain, np.ndarray) and ours.shape == plain.shape:
        look.metrics = measures(ours, plain)
    return look


def _nonfinite(value: Value) -> int:
    if not isinstance(value, np.ndarray) or not is_float(value):
        return 0
    return int(value.size - np.isfinite(widen(value)).sum())
