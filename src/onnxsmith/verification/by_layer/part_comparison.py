"""Compares two models part by part: both compute each tensor from the reference's values of earlier tensors.

A part of a model computes one paired tensor from the nearest paired tensors before it. A fault in a part shows at its
end: no later part can hide it, and the rounding of earlier parts adds nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.runtimes.base import Array, Feeds, Value
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.chunks import chunks
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.pair_difference import is_as_exact, mismatch, value_difference
from onnxsmith.verification.by_layer.tap import Tap, Values
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.value_comparison import is_float

BUDGET = 2**30
"""Limits the bytes of tensors that are compared together, with their copies. A choice: 1 GiB."""


@dataclass(frozen=True)
class Parts:
    """Holds two models, and the pairs of tensors at which they can be cut. `feeds` is one input, with the names of each
    side. `pairs` are intermediate float tensors, `ports` are the outputs. Names are the candidate's."""

    reference: Tap
    candidate: OnnxTap
    pairs: tuple[Pair, ...]
    ports: tuple[Pair, ...]
    feeds: tuple[Feeds, Feeds]
    names: Mapping[str, str] = field(default_factory=dict)
    """Maps the reference's names of inputs to the candidate's, where they differ."""
    budget: int = BUDGET

    @cached_property
    def partner(self) -> Mapping[str, str]:
        """Maps the candidate's names of tensors to the reference's."""
        return {pair.candidate: pair.reference for pair in (*self.pairs, *self.ports)}

    @cached_property
    def _kept(self) -> Values:
        """Returns the reference's values, by the reference's names. The values are kept if all values fit into the
        budget together."""
        return {}

    def values(self, names: Iterable[str]) -> Values:
        """Returns the reference's values of these tensors."""
        partners = {name: self.partner[name] for name in names}
        known = {**self.feeds[0], **self._kept}
        asked = tuple(dict.fromkeys(own for own in partners.values() if own not in known))
        found = self.reference.values(self.feeds[0], asked) if asked else {}
        if self._fits:
            self._kept.update(found)
        return {name: found[own] if own in found else known[own] for name, own in partners.items()}

    @cached_property
    def _fits(self) -> bool:
        return len(self.chunks([pair.candidate for pair in self.pairs])) == 1

    def boundary(self, names: Iterable[str], cuts: Collection[str]) -> list[str]:
        """Returns the tensors among `cuts` that the parts before `names` read."""
        outline, known = self.candidate.outline, frozenset(cuts)
        return list(dict.fromkeys(read for name in names for read in outline.segment(name, known)[1] if read in known))

    def chunks(self, names: Collection[str]) -> list[list[str]]:
        """Splits the names of these tensors and of the outputs into chunks that fit into the budget."""
        wanted = [pair for pair in (*self.pairs, *self.ports) if pair in self.ports or pair.candidate in names]
        found = chunks(wanted, self.candidate.nbytes(self.feeds[1]), self.budget)
        return [[pair.candidate for pair in chunk] for chunk in found]

    def apart(self, cuts: Collection[str], names: Collection[str] | None = None) -> dict[str, str]:
        """Returns the tensors that differ if the candidate computes them from the reference's values at `cuts`, with
        the reason. Compares the tensors in `names`, or all `cuts` and the outputs.

        Raises:
            OnnxsmithError: `runtime/…` if a side fails.
        """
        found: dict[str, str] = {}
        for chunk in self.chunks(cuts) if names is None else [list(names)]:
            found |= self._apart(chunk, cuts)
        return found

    def plainly_apart(self) -> dict[str, str]:
        """Returns the tensors that differ if the candidate computes them from the inputs, with the reason."""
        found: dict[str, str] = {}
        for chunk in self.chunks([pair.candidate for pair in self.pairs]):
            found |= self._apart(chunk, ())
        return found

    def _apart(self, names: Sequence[str], cuts: Collection[str]) -> dict[str, str]:
        given = self.boundary(names, cuts)
        ours = self.values(dict.fromkeys((*names, *given)))
        theirs = self.candidate.forced(self.feeds[1], {name: ours[name] for name in given}, names)
        allowed = self.candidate.roundings(frozenset(cuts), names)
        found: dict[str, str] = {}
        for name in names:
            reason = mismatch(ours[name], theirs[name])
            if not reason and name in allowed:
                reason = value_difference(ours[name], theirs[name], allowed[name]).reason
                # Float64 decides about a part only: for the whole plain run it would take as long as for all parts.
                exact = self._exact(name, ours, cuts) if reason and cuts else None
                if is_as_exact(exact, ours[name], theirs[name], allowed[name]):
                    continue
            if reason:
                found[name] = reason
        return found

    def _exact(self, name: str, known: Values, cuts: Collection[str]) -> Value:
        """Returns the reference's value in float64, computed from its values at the cuts."""
        given = {self.partner[read]: known[read] for read in self.boundary([name], cuts)}
        return self.reference.exact(self.feeds[0], given, self.partner[name])

    def readers(self, name: str, cuts: Collection[str]) -> list[str]:
        """Returns the tensors among `cuts`, and the outputs, whose part reads this tensor."""
        outline, ports = self.candidate.outline, {pair.candidate for pair in self.ports}
        found: dict[str, None] = {}
        queue, seen = [name], {name}
        while queue:
            for number in outline.readers.get(queue.pop(), ()):
                for made in outline.steps[number].outputs:
                    if made in cuts or made in ports:
                        found[made] = None
                    if made not in cuts and made not in seen:
                        seen.add(made)
                        queue.append(made)
        return list(found)


def usable(parts: Parts) -> Parts:
    """Returns the parts without unusable pairs. A pair is unusable if its values have different dtypes or shapes on the
    two sides, hold no number, or hold only numbers below the normal range of their dtype."""
    dtypes = {value.name: value.dtype for node in parts.candidate.model.graph for value in node.outputs}
    kept: list[Pair] = []
    for chunk in chunks(parts.pairs, parts.candidate.nbytes(parts.feeds[1]), parts.budget):
        ours = parts.values(pair.candidate for pair in chunk)
        theirs = parts.candidate.forced(parts.feeds[1], {}, [pair.candidate for pair in chunk])
        for pair in chunk:
            name, dtype = pair.candidate, dtypes.get(pair.candidate)
            if dtype is not None and _fits(ours[name], theirs[name]):
                kept.append(pair)
    return replace(parts, pairs=tuple(kept))


def _fits(ours: Value, theirs: Value) -> bool:
    if not isinstance(ours, np.ndarray) or not isinstance(theirs, np.ndarray) or not is_float(ours):
        return False
    if not ours.size or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False
    return rms(widen(ours)) >= _least_normal(ours)  # below the normal range, numbers keep few digits


def _least_normal(value: Array) -> float:
    return float(ml_dtypes.finfo(value.dtype).tiny)  # type: ignore[no-untyped-call]
