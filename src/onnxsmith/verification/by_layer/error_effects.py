"""Measures the effect of an operation's own error on the outputs, by removing the error.

The candidate is run twice. In both runs the candidate gets the reference's values for all tensors, except tensors that
follow from the examined tensor. In the first run the candidate computes the examined tensor itself; in the second run
it gets the reference's value. The outputs of the two runs differ by the effect of this error. If the error is a fault,
the outputs with it are further from the reference. If later steps undo a different computation, the outputs with it are
closer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.runtimes.base import Value
from onnxsmith.verification.by_layer.isolated_runs import Trial
from onnxsmith.verification.by_layer.pair_difference import Look, mismatch, value_difference
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.rounding import FACTOR
from onnxsmith.verification.value_comparison import difference, is_float

_MOST = 0.6
"""Separates a fault from a harmless difference. An error is a fault if the output's difference contains at least this
share of the error's effect. An error is harmless if the difference contains at most 1 minus this share. A choice: above
one half, so that no error is both."""
_DOUBT = 0.25
"""Limits the doubt about the share: it is certain if other differences, taken as random, change it by no more than
this. A choice."""
_HALF = 0.5
"""Decides for values that are not floats: an error explains their differences if fewer than this share of them remain
after the error is removed. A choice."""


@dataclass(frozen=True)
class Effect:
    """Holds the effect on the output that the error moves most, in root mean square relative to the output's scale.

    `size` is how far the error moves the output. `present` and `absent` are the output's distance from the reference
    with and without the error. `part` is the share of the effect in the difference with the error: 1 for a fault, 0 if
    a later step undoes the error. `doubt` is how far other differences may have changed `part`.
    """

    size: float = 0.0
    present: float = 0.0
    absent: float = 0.0
    part: float = 0.5
    doubt: float = 0.0

    @property
    def harms(self) -> bool:
        """Whether this error makes the outputs wrong."""
        return self.size > 0 and self.doubt <= _DOUBT and self.part >= _MOST

    @property
    def helps(self) -> bool:
        """Whether the outputs are further from the reference without the error, because a later step undoes it."""
        return self.size > 0 and self.doubt <= _DOUBT and self.part <= 1 - _MOST


def effect_of(trial: Trial, look: Look, otherwise: Collection[str]) -> Effect | None:
    """Returns the effect of a pair's own error. Returns None if the error reaches no output, and an empty effect if the
    effect cannot be computed. `otherwise` are wrong pairs, whose tensors the candidate computes itself."""
    made = trial.made_with(look.pair.candidate)
    behind = trial.dependents(made)
    outputs = [pair.candidate for pair in trial.pairs if pair.how == "port" and pair.candidate in behind | made]
    if not outputs:
        return None
    elsewhere = trial.cuts - behind - made - frozenset(otherwise)
    computed = [name for name in outputs if name not in made]
    try:
        reference, present = trial.computed_from(outputs, elsewhere)
        absent = {name: reference[name] for name in outputs}
        if computed:
            absent |= trial.computed_from(computed, elsewhere | made)[1]
    except OnnxsmithError as error:
        refuse_other_than_shapes(error)
        return Effect()
    found = [_effect(reference[name], present[name], absent[name]) for name in outputs]
    return max(found, key=lambda one: one.size)


def returns(trial: Trial, look: Look, right: Collection[str]) -> bool:
    """Whether an error returns after the tensors of `right`, which agree only because the error is small beside their
    scale. An operation that subtracts a mean, such as InstanceNormalization, removes the scale and keeps the error.

    Rounding also grows there. So a later tensor has to be far closer to the reference without the error, and an output
    has to move, and not towards the reference."""
    made = trial.made_with(look.pair.candidate)
    behind = trial.dependents(made)
    agreeing = behind.intersection(right)
    later = sorted(trial.dependents(agreeing), key=trial.order.__getitem__) if agreeing else []
    if not later:
        return False
    elsewhere = trial.cuts - behind - made
    try:
        reference, present = trial.computed_from(later, elsewhere)
        _, absent = trial.computed_from(later, elsewhere | made)
    except OnnxsmithError as error:
        refuse_other_than_shapes(error)
        return False
    roundings = trial.roundings(later, elsewhere)
    far = {name: (apart(reference[name], present[name]), apart(reference[name], absent[name])) for name in later}
    shows = any(
        far[name][0] > FACTOR * far[name][1]
        and not roundings[name].noise
        and value_difference(reference[name], present[name], roundings[name]).reason
        for name in later
    )
    outputs = {pair.candidate for pair in trial.pairs if pair.how == "port"}
    return shows and any(
        far[name][0] >= far[name][1] and value_difference(absent[name], present[name], roundings[name]).reason
        for name in outputs.intersection(later)
    )


def left_without(trial: Trial, look: Look) -> tuple[float, float] | None:
    """Returns the difference of the worst output in two runs, that of its worst element: in the plain run, and with the
    reference's value at this tensor and all other tensors computed from the inputs. Returns None if the candidate
    cannot compute from the reference's value."""
    made = trial.made_with(look.pair.candidate)
    outputs = [pair.candidate for pair in trial.pairs if pair.how == "port"]
    if not outputs:
        return 0.0, 0.0
    reference, plain = trial.reference([*outputs, *made]), trial.candidate({}, outputs)
    computed = [name for name in outputs if name not in made]
    healed = {name: reference[name] for name in outputs}
    if computed:
        try:
            healed |= trial.candidate({name: reference[name] for name in made}, computed)
        except OnnxsmithError as error:
            refuse_other_than_shapes(error)
            return None
    worst = max(outputs, key=lambda name: apart(reference[name], plain[name]))
    return farthest(reference[worst], plain[worst]), farthest(reference[worst], healed[worst])


def refuse_other_than_shapes(error: OnnxsmithError) -> None:
    """Raises an error, unless a runtime refused tensors of both sides in one graph: their shapes do not fit."""
    if error.problem.id != "runtime/failed":
        raise error


def _effect(reference: Value, present: Value, absent: Value) -> Effect:
    sizes = apart(absent, present, reference), apart(reference, present), apart(reference, absent)
    if sizes[0] == 0:
        return Effect(*sizes)
    arrays = [one for one in (reference, present, absent) if isinstance(one, np.ndarray) and is_float(one)]
    if len(arrays) < 3 or not np.isfinite(sizes).all():
        harmful, undone = sizes[2] <= _HALF * sizes[1], sizes[1] <= _HALF * sizes[2]
        return Effect(*sizes, part=1.0 if harmful else 0.0 if undone else 0.5)
    truth, with_it, without = (widen(one).ravel() for one in arrays)
    known = np.isfinite(truth) & np.isfinite(with_it) & np.isfinite(without)
    truth, with_it, without = truth[known], with_it[known], without[known]
    move, wrong = with_it - without, with_it - truth
    size = float(move @ move)
    other = min(sizes[1], sizes[2]) / (sizes[0] * np.sqrt(max(move.size, 1)))
    return Effect(*sizes, part=float(move @ wrong) / size if size else 0.5, doubt=float(other))


def farthest(reference: Value, candidate: Value) -> float:
    """Returns the difference of the worst element, relative to scale: the measure of reports. Infinite if the values
    cannot be compared."""
    if isinstance(reference, np.ndarray) and isinstance(candidate, np.ndarray) and is_float(reference):
        reference, candidate = widen(reference), widen(candidate)
    found = difference(reference, candidate, np.inf)
    return found.worst_rel or (np.inf if found.reason else 0.0)


def apart(a: Value, b: Value, scale_of: Value = None) -> float:
    """Returns the root mean square of the difference of two values, divided by the scale of the first value or of
    `scale_of`. For values that are not floats, returns the share of elements that differ. Infinite if the values cannot
    be compared."""
    if isinstance(a, list) and isinstance(b, list):
        return max((apart(x, y) for x, y in zip(a, b, strict=False)), default=0.0) if len(a) == len(b) else np.inf
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return 0.0 if a is b else np.inf
    if mismatch(a, b):
        return np.inf
    if not a.size:
        return 0.0
    if not is_float(a):
        return float(np.mean(a != b))
    wide, other = widen(a).ravel(), widen(b).ravel()
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    finite = np.isfinite(wide) & np.isfinite(other)
    if not (same | finite).all():
        return np.inf
    scale = widen(scale_of).ravel() if isinstance(scale_of, np.ndarray) and is_float(scale_of) else wide
    size = rms(scale[np.isfinite(scale)])
    differ = finite & ~same
    far = rms(wide[differ] - other[differ]) * float(np.sqrt(np.mean(differ)))
    return far / size if size else (np.inf if far else 0.0)
