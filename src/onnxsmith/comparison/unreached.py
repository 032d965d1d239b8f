"""Looks whether the inputs reach what two files are known to differ in.

Two files that hold a weight of one name with other values, and answer alike, either mean the same, or differ where no
input came: in a row of a table that nothing read. So the candidate is run with the reference's values in the places
that differ. Where that moves something, the places were reached, and the outputs agreed all the same. Where it moves
nothing on any input, what was compared says nothing about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from onnxsmith.comparison.explore import Run
from onnxsmith.comparison.probe import Array, Probe
from onnxsmith.comparison.tensors import difference
from onnxsmith.model.weights import Weight
from onnxsmith.runtimes.base import Outputs

_MOST = 24
"""Weights that are looked at, evenly chosen: each takes runs of the model."""
_ROWS = 8
"""Rows of a weight that are put in one by one, where no more than half of them differ."""


def unreached(reference: Probe, candidate: Probe, runs: Sequence[Run]) -> str:
    """What the two differ in and no input reaches; empty where there is nothing of the kind."""
    if not (reference.start() and candidate.start()):
        return ""
    ours = {weight.name: weight for weight in reference.weights}
    differing = [
        (weight, other)
        for weight in candidate.weights
        if (other := ours.get(weight.name)) is not None and _differs(weight, other)
    ]
    step = max(1, -(-len(differing) // _MOST))
    hidden = [said for pair in differing[::step] if (said := _hidden(*pair, candidate, runs))]
    more = f", and {len(hidden) - 1} more" if len(hidden) > 1 else ""
    return f"{hidden[0]}{more}" if hidden else ""


def _differs(ours: Weight, theirs: Weight) -> bool:
    a, b = ours.tensor, theirs.tensor
    if a is b or a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tobytes() != b.tobytes()


def _hidden(weight: Weight, other: Weight, probe: Probe, runs: Sequence[Run]) -> str:
    """What to say of a weight where values of the reference move nothing."""
    own, wanted = np.asarray(weight.tensor.numpy()), np.asarray(other.tensor.numpy())
    places = own != wanted
    changes = list(_changes(own, wanted, places))
    still = sum(not any(_moves(probe, run, weight, changed) for run in runs) for changed in changes)
    if not still or not _counts(weight, own, probe, runs):
        return ""
    part = "" if still == len(changes) else f", {still} of {len(changes)} rows that were tried"
    return f"weight {weight.name!r} differs in {int(places.sum())} elements, and no input reaches them{part}"


def _changes(own: Array, wanted: Array, places: Array) -> Iterator[Array]:
    """The weight with the other's values, in one row each where only some rows differ."""
    rows = np.flatnonzero(places.reshape(len(own), -1).any(axis=1)) if own.ndim > 1 else np.zeros(0, int)
    if not rows.size or 2 * rows.size > len(own):
        yield wanted
        return
    for row in rows[:: -(-rows.size // _ROWS)]:
        changed = own.copy()
        changed[row] = wanted[row]
        yield changed


def _moves(probe: Probe, run: Run, weight: Weight, changed: Array) -> bool:
    usual, moved = probe.plain(run.feed), probe.replaced(run.feed, weight, changed)
    return usual is not None and moved is not None and _apart(usual, moved)


def _counts(weight: Weight, own: Array, probe: Probe, runs: Sequence[Run]) -> bool:
    """Whether the weight moves anything at all: one that nothing uses may be anything."""
    whole = np.flip(own) + own.dtype.type(1)
    return any(_moves(probe, run, weight, whole) for run in runs)


def _apart(usual: Outputs, moved: Outputs) -> bool:
    for name, value in usual.items():
        found = difference(value, moved[name], 0.0)
        if found.reason or found.worst_abs or found.unequal:
            return True
    return False
