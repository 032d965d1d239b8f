"""Runs two sides on one input, as a whole or operation by operation, and computes the differences that rounding
explains."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from onnxsmith.base.report.parts.layers import Inside
from onnxsmith.runtimes.base import Feeds, Value
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.loop_divergence import first_inside
from onnxsmith.verification.by_layer.pair_difference import Look, is_as_exact, with_noise
from onnxsmith.verification.by_layer.tap import Tap, Values
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.rounding import FACTOR, Rounding, asked, counted
from onnxsmith.verification.value_comparison import is_float

_SURE = ("name", "origin", "port", "graph")
"""Lists the ways of pairing that are certain."""
_COARSE = 2.0**-8
"""Holds the unit roundoff of bfloat16, the coarsest dtype in which whole networks are computed."""


class Trial:
    """Runs the two sides of a comparison from given tensors. Holds their pairs, and the tolerance that the user asked
    for, if any. `keep` keeps the reference's values, if all pairs fit into memory together.

    All names are the candidate's, also the keys of returned values.
    """

    def __init__(
        self,
        sides: tuple[Tap, Tap],
        pairs: Sequence[Pair],
        feeds: tuple[Feeds, Feeds],
        *,
        tolerance: float | None = None,
        keep: bool = True,
    ) -> None:
        self.sides, self.pairs, self.feeds = sides, pairs, feeds
        self.tolerance = tolerance
        self.order = {pair.candidate: number for number, pair in enumerate(pairs)}
        self.cuts = frozenset(self.order)
        self.runs = 0
        self.converted: set[str] = set()
        """Names the tensors whose float dtype differs from the reference's."""
        self.narrowed: set[str] = set()
        """Names the tensors among `converted` with a narrower dtype than the reference's."""
        self._kept: Values | None = {} if keep else None

    def note_dtypes(self, ours: Values, theirs: Values) -> None:
        """Records which float dtypes differ."""
        for name, value in theirs.items():
            other = ours[name]
            if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray) or value.dtype == other.dtype:
                continue
            self.converted.add(name)
            if value.dtype.itemsize < other.dtype.itemsize:
                self.narrowed.add(name)

    def partner(self, name: str) -> str:
        """Returns the reference's name of the tensor."""
        return self.pairs[self.order[name]].reference

    def reference(self, names: Collection[str]) -> Values:
        """Returns the reference's values of these tensors; inputs are taken from the feeds."""
        given = {name: self.feeds[0][self.partner(name)] for name in names if self.partner(name) in self.feeds[0]}
        names = [name for name in names if name not in given]
        if not names:
            return given
        wanted = dict.fromkeys(self.partner(name) for name in names)
        if self._kept is None or not self._kept.keys() >= wanted.keys():
            self.runs += 1
            values = self.sides[0].values(self.feeds[0], tuple(wanted))
            if self._kept is not None:
                self._kept |= values
        else:
            values = self._kept
        return {**given, **{name: values[self.partner(name)] for name in names}}

    def measure(self, names: Collection[str]) -> None:
        """Records the scales of tensors, from which a side that quantises computes its error."""
        asking = [(side, place) for place, side in enumerate(self.sides) if side.scales is not None]
        if not asking:
            return
        names = dict.fromkeys((*names, *self.boundary(names, self.cuts)))
        for name, value in self.reference(names).items():
            scale = rms(value) if isinstance(value, np.ndarray) and is_float(value) and value.size else 0.0
            for side, place in asking:
                assert side.scales is not None
                side.scales.setdefault(name if place else self.partner(name), scale)

    def candidate(self, given: Mapping[str, Value], names: Sequence[str]) -> Values:
        """Returns the candidate's values of `names`, computed from the nearest earlier tensors in `given`."""
        self.runs += 1
        return self.sides[1].forced(self.feeds[1], given, names)

    def boundary(self, names: Collection[str], cuts: Collection[str]) -> list[str]:
        """Returns the cuts that the steps before `names` read."""
        outline = self.sides[1].outline
        cuts = frozenset(cuts)
        return list(dict.fromkeys(read for name in names for read in outline.segment(name, cuts)[1] if read in cuts))

    def computed_from(
        self, names: Sequence[str], cuts: Collection[str], noisy_at: Collection[str] = ()
    ) -> tuple[Values, Values]:
        """Returns the values of `names` on both sides. The candidate computes its values from the reference's values at
        `cuts`. Values at `noisy_at` get random noise of the size that rounding explains."""
        given = self.boundary(names, cuts)
        ours = self.reference(dict.fromkeys((*names, *given)))
        handed = {name: ours[name] for name in given}
        shaking = [name for name in given if name in noisy_at]
        roundings = self.roundings(shaking, self.cuts)
        handed |= {name: with_noise(handed[name], roundings[name], name) for name in shaking}
        return ours, self.candidate(handed, names)

    def is_same_operation(self, pair: Pair) -> bool:
        """Whether both sides compute the pair from other pairs by the same operations in the same order."""
        if pair.how not in _SURE:
            return False
        theirs = self.sides[1].outline.segment(pair.candidate, self.cuts)[0]
        ours = self.sides[0].outline.segment(pair.reference, {self.partner(name) for name in self.cuts})[0]
        return [step.op for step in ours] == [step.op for step in theirs]

    def made_with(self, name: str) -> frozenset[str]:
        """Returns the paired tensors that the step of `name` computes, including `name`."""
        step = self.sides[1].outline.step_of(name)
        return frozenset(made for made in (step.outputs if step is not None else ()) if made in self.cuts) | {name}

    def dependents(self, names: Collection[str]) -> frozenset[str]:
        """Returns all pairs that depend on these tensors."""
        outline = self.sides[1].outline
        queue, seen = list(names), set(names)
        while queue:
            for reader in outline.readers.get(queue.pop(), ()):
                for made in outline.steps[reader].outputs:
                    if made not in seen:
                        seen.add(made)
                        queue.append(made)
        return frozenset(seen & self.cuts) - frozenset(names)

    def roundings(self, names: Sequence[str], cuts: Collection[str]) -> dict[str, Rounding]:
        """Returns the larger tolerance of the two sides, if both compute from `cuts`."""
        if self.tolerance is not None:
            return dict.fromkeys(names, asked(self.tolerance))
        theirs = self.sides[1].roundings(cuts, names)
        ours = self.sides[0].roundings({self.partner(cut) for cut in cuts}, [self.partner(name) for name in names])
        found = {}
        for name in names:
            both = [known[key] for known, key in ((ours, self.partner(name)), (theirs, name)) if key in known]
            found[name] = max(both, key=lambda one: one.tolerance) if both else self._guess(name, cuts)
            if found[name].tolerance == 0 and self._is_converted(name, cuts):
                coarse = counted(1, 1, _COARSE)
                found[name] = replace(coarse, noise=found[name].noise, levels=found[name].levels)
        return found

    def _is_converted(self, name: str, cuts: Collection[str]) -> bool:
        """Whether the tensor has a narrower dtype than the reference's, or values at the cuts before it were converted
        to another dtype."""
        if not self.converted:
            return False
        if name in self.narrowed:
            return True
        return not self.converted.isdisjoint(self.sides[1].outline.segment(name, frozenset(cuts))[1])

    def _guess(self, name: str, cuts: Collection[str]) -> Rounding:
        """Guesses a tolerance if neither side is an ONNX graph: each step counts as a sum of unknown length."""
        steps = len(self.sides[1].outline.segment(name, frozenset(cuts))[0]) or 1
        return counted(1024 * steps, steps, 2.0**-24)  # 1024 terms as in `verification/rounding_terms.py`; float32

    def inside(self, look: Look) -> Inside | None:
        """Finds where the bodies of a pair's steps differ, if both sides compute from the reference's values."""
        before = self.boundary([look.pair.candidate], self.cuts)
        theirs = self.sides[1].inside(self.feeds[1], self.reference(before), look.pair.candidate)
        if not theirs:
            return None
        return first_inside(self.sides[0].inside(self.feeds[0], self._before(look), look.pair.reference), theirs)

    def _before(self, look: Look) -> Values:
        """Returns the values that the reference reads for this pair, by the reference's names."""
        back = {pair.reference: pair.candidate for pair in self.pairs}
        read = [name for name in self.sides[0].outline.segment(look.pair.reference, back.keys())[1] if name in back]
        held = self.reference([back[name] for name in read])
        return {name: held[back[name]] for name in read}

    def is_rounding(self, look: Look) -> bool:
        """Whether the candidate is about as close to float64 as the reference, or differs from it by rounding only. Two
        correct computations that subtract nearly equal numbers, such as InstanceNormalization of values far from 0,
        may be off by amounts that differ by a factor."""
        side, name = self.sides[0], look.pair.candidate
        if look.pair.reference in self.feeds[0]:
            return False
        ours, theirs = self.computed_from([name], self.cuts)
        truth = side.exact(self.feeds[0], self._before(look), look.pair.reference)
        return is_as_exact(truth, ours[name], theirs[name], look.rounding, FACTOR)
