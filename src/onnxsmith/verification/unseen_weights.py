"""Checks whether the inputs reach the known differences between two files.

Suppose that two files hold a weight of the same name with different values, and that their outputs agree. Then either
the values mean the same, or no input reached the differing places, such as a row of a table that was not read. So the
candidate is run with the reference's values in these places. If the check then sees a difference, the inputs reached
the places, and the outputs agreed nevertheless. If the check sees no difference on any input, the comparison says
nothing about these places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.base.words import first_few
from onnxsmith.graph.surgery.weights_as_inputs import Weight, single_numbers
from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.detection_power import Check
from onnxsmith.verification.explore import Run
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.probe import Array, Probe
from onnxsmith.verification.value_comparison import difference, unit

Tells = Callable[[Run, Outputs, Outputs], bool]
_MOST = 24
"""Limits the weights that are tried, evenly chosen. A choice: each weight needs several runs of the model."""
_FEW_UNITS = 64
"""Limits the difference of equal weights that were computed in different ways, in units in the last place. A choice."""
_NUMBERS = 6
"""Limits the single numbers that are tried. A choice: each number needs a session."""
_ROWS = 8
"""Limits the rows of a weight that are replaced one by one, if at most half of its rows differ. A choice."""


def unseen_weights(reference: Probe, candidate: Probe, runs: Sequence[Run], check: Check) -> str:
    """Names the differences of the two files that no input shows to the `check`; "" if there are none."""
    if not (reference.start() and candidate.start()):
        return ""
    ours = {weight.name: weight for weight in reference.weights}
    differing = [
        (weight, other)
        for weight in candidate.weights
        if (other := ours.get(weight.name)) is not None and _differs(weight, other)
    ]
    step = max(1, -(-len(differing) // _MOST))
    hidden = [said for pair in differing[::step] if (said := _unseen(*pair, candidate, runs, check))]
    hidden += _unseen_numbers(reference, candidate, runs, check)
    return first_few(hidden, 1, "; ")


def _unseen_numbers(reference: Probe, candidate: Probe, runs: Sequence[Run], check: Check) -> list[str]:
    """Names the differences of single numbers that are no weights: factors, and zero points of quantisers. The numbers
    are replaced one by one, because two of them may cancel each other."""
    ours = single_numbers(reference.model)
    values = {
        name: ours[name]
        for name, own in single_numbers(candidate.model).items()
        if name in ours and own.dtype == ours[name].dtype and places(own.numpy(), ours[name].numpy()).any()
    }
    hidden = [name for name in list(values)[:_NUMBERS] if not _is_seen(candidate, {name: values[name]}, runs, check)]
    return [f"{', '.join(map(repr, hidden[:3]))} differ, and no input shows it"] if hidden else []


def _is_seen(candidate: Probe, values: Mapping[str, ir.TensorProtocol], runs: Sequence[Run], check: Check) -> bool:
    """Whether the check sees other values of these numbers. Also True if the candidate does not run with these
    values."""
    with candidate.with_numbers(values) as changed:
        for run in runs:
            usual, moved = candidate.plain(run.feed), changed.plain(run.feed)
            if moved is None or (usual is not None and check.sees(run, usual, moved)):
                return True
    return False


def _differs(ours: Weight, theirs: Weight) -> bool:
    a, b = ours.tensor, theirs.tensor
    if a is b or a.dtype != b.dtype or a.shape != b.shape or np.array_equal(a.numpy(), b.numpy()):
        return False
    return bool(places(np.asarray(a.numpy()), np.asarray(b.numpy())).any())


def places(own: Array, wanted: Array) -> Array:
    """Returns a mask of the places where two constants differ by more than the rounding of two ways of computing
    them."""
    a, b = widen(own), widen(wanted)
    finite = b[np.isfinite(b)]
    least = _FEW_UNITS * unit(own) * (rms(finite) if finite.size else 0.0)
    alike = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        return np.asarray(~(alike | (np.abs(a - b) <= least)))


def _unseen(weight: Weight, other: Weight, probe: Probe, runs: Sequence[Run], check: Check) -> str:
    """Returns a sentence if the reference's values of a weight change nothing that the check sees; else ""."""
    own, wanted = np.asarray(weight.tensor.numpy()), np.asarray(other.tensor.numpy())
    apart = places(own, wanted)
    changes = list(_changes(own, wanted, apart))
    still = sum(not _is_seen_with(probe, runs, weight, changed, check.sees) for changed in changes)
    # If any other values have no effect either, the weight is unused and needs no warning.
    if not still or not _is_seen_with(probe, runs, weight, np.flip(own) + own.dtype.type(1), _apart):
        return ""
    part = "" if still == len(changes) else f", {still} of {len(changes)} rows that were tried"
    return f"weight {weight.name!r} differs in {int(apart.sum())} elements, and no input shows it{part}"


def _changes(own: Array, wanted: Array, apart: Array) -> Iterator[Array]:
    """Yields the weight with the reference's values. If only some rows differ, yields it with one row changed at a
    time."""
    rows = np.flatnonzero(apart.reshape(len(own), -1).any(axis=1)) if own.ndim > 1 else np.zeros(0, int)
    if not rows.size or 2 * rows.size > len(own):
        yield wanted
        return
    for row in rows[:: -(-rows.size // _ROWS)]:
        changed = own.copy()
        changed[row] = wanted[row]
        yield changed


def _is_seen_with(probe: Probe, runs: Sequence[Run], weight: Weight, value: Array, tells: Tells) -> bool:
    """Whether another value of the weight, on any input, gives outputs that `tells` distinguishes from the usual
    outputs."""
    for run in runs:
        usual, moved = probe.plain(run.feed), probe.replaced(run.feed, weight, value)
        if usual is not None and moved is not None and tells(run, usual, moved):
            return True
    return False


def _apart(_: Run, usual: Outputs, moved: Outputs) -> bool:
    for name, value in usual.items():
        found = difference(value, moved[name], 0.0)
        if found.reason or found.worst_abs or found.unequal:
            return True
    return False
