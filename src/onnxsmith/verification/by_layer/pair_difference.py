"""Compares the two tensors of a pair, and collects the results of all pairs.

After a Cast to float16, two correct computations may differ by a whole step of float16 in a few elements, whose values
lie near the boundary of two steps. A fault far smaller than a step changes many elements. So random noise of the size
that rounding explains is added to the suspected tensor. The candidate's result is compared with the result that follows
from the noisy tensor.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field, replace

import numpy as np

from onnxsmith.base.report.parts.layers import Inside
from onnxsmith.runtimes.base import Array, Value
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.metrics.base import measures, widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.rounding import FACTOR, Rounding, counted
from onnxsmith.verification.value_comparison import Difference, difference, is_float

_SPREAD = 3.0
"""Limits the root mean square error of quantisers, in multiples of the error that follows from their steps. A
choice."""
FINE = 2.0**-24
"""Holds the unit roundoff of float32: only coarser dtypes need the comparison with noise."""


def with_noise(value: Value, rounding: Rounding, name: str) -> Value:
    """Returns the value with a random error of the size that rounding explains, relative to its scale."""
    if not isinstance(value, np.ndarray) or not is_float(value) or value.dtype.kind == "c" or value.size == 0:
        return value
    wide = widen(value)
    if not np.isfinite(wide).all():
        return value
    drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(value.shape)
    noise = rounding.tolerance / FACTOR * (rms(wide) + np.abs(wide)) * drawn
    return np.asarray((wide + noise).astype(value.dtype))


def stands_out(reference: Value, computed: Value, noisy: Value, rounding: Rounding) -> bool:
    """Whether `computed` is further from the reference, in root mean square, than noise and float32 rounding."""
    values = (reference, computed, noisy)
    if not all(isinstance(value, np.ndarray) and is_float(value) and value.size for value in values):
        return False
    truth, found, usual = (widen(np.asarray(value)) for value in values)
    if not all(np.isfinite(one).all() for one in (truth, found, usual)):
        return False
    fine = counted(rounding.terms, rounding.depth, min(rounding.unit, FINE)).tolerance * rms(truth)
    return rms(found - truth) > max(FACTOR * rms(usual - truth), fine)


def beyond_noise(reference: Value, computed: Value, rounding: Rounding) -> str:
    """Returns why quantisation error does not explain a difference that is everywhere within its largest size, or "".

    Quantisation error is positive as often as negative. So its root mean square over all elements follows from the
    steps, and it hardly correlates with the values. An error in a scale correlates with the values.
    """
    if not rounding.noise or rounding.given is not None:
        return ""
    if not isinstance(reference, np.ndarray) or not isinstance(computed, np.ndarray) or not is_float(reference):
        return ""
    truth, found = widen(reference).ravel(), widen(computed).ravel()
    if truth.size < _MANY or not (np.isfinite(truth).all() and np.isfinite(found).all()):
        return ""
    apart, scale = found - truth, rms(truth)
    if not scale:
        return ""
    usual = rounding.noise + replace(rounding, noise=0.0).tolerance
    spread, factor = rms(apart) / scale, float(truth @ apart) / float(truth @ truth)
    if spread > _SPREAD * usual:
        return (
            f"the root mean square of the differences is {spread:.2g} of the tensor's, where quantisers explain "
            f"{usual:.2g}"
        )
    if abs(factor) > usual:
        return (
            f"it is {1 + factor:.4g} times the reference, but quantisers explain only a factor from "
            f"{1 - usual:.4g} to {1 + usual:.4g}"
        )
    return ""


_MANY = 32
"""Names the number of elements from which the statistics are meaningful. A choice: with fewer elements, chance may add
up."""


_ULP = 2.0**-23
"""Holds one ulp of float32 at 1."""
_BEYOND_NOISE = 5.0
"""Sets the severity of an error that only the statistics of all elements show. A choice: just above slight
(`verification/by_layer/divergence.py`)."""


@dataclass
class Look:
    """Holds the result of one pair: its difference in the plain run, and its own difference. `own` is None if one
    operation's rounding explains the plain run, or if the side cannot compute from given values."""

    pair: Pair
    inherited: Difference
    own: Difference | None
    rounding: Rounding
    """Bounds the rounding of the pair's own operation."""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    mismatch: str = ""
    """Says why the two tensors are a wrong pair."""
    reshaped: bool = False
    """Whether only the shapes differ and the numbers of elements are equal, because a tool reshapes the tensor
    elsewhere."""
    suspicious: bool = False
    """Whether the pair differs in the plain run by more than one operation may add to the differences of its inputs."""
    nonfinite: tuple[int, int] = (0, 0)
    """Counts the NaN and infinite elements in the reference and in the candidate."""
    verdict: str = ""
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def severity(self) -> float:
        """Returns the own error in multiples of its tolerance. For an operation without rounding, whose tolerance is 0,
        an ulp of float32 is used. A difference of integers is beyond any rounding."""
        if self.own is None or not self.own.reason:
            return 0.0
        if not self.own.worst_rel or "float" not in self.dtype:
            return math.inf
        times = self.own.worst_rel / max(self.rounding.tolerance, _ULP)
        return times if times > 1 else _BEYOND_NOISE


@dataclass
class Found:
    """Holds all compared pairs, in the candidate's order. `culprits` are pairs with an own error that an output
    shows."""

    looks: list[Look] = field(default_factory=list)
    culprits: list[Look] = field(default_factory=list)
    otherwise: list[Look] = field(default_factory=list)
    """Lists the pairs with an own difference that is undone before any output."""
    rounded: list[Look] = field(default_factory=list)
    """Lists the pairs for which float64 shows that the reference lost the digits, or that neither side is worse."""
    slight: list[Look] = field(default_factory=list)
    """Lists the pairs with an own error slightly above its tolerance, which no output shows."""
    left: tuple[float, float] | None = None
    """Holds the difference of the worst output in the plain run, and the difference with the reference's value at the
    first culprit."""
    inside: Inside | None = None
    """Says where the bodies of the first culprit first differ, if the culprit has bodies."""
    pattern: str = ""
    """Describes in words how the first culprit differs on the reference's own inputs (`error_patterns.py`)."""
    runs: int = 0

    @property
    def first_nonfinite(self) -> Look | None:
        """Returns the first tensor that is finite in the reference and not in the candidate."""
        return next((look for look in self.looks if look.nonfinite[1] > look.nonfinite[0]), None)


def plain_look(pair: Pair, ours: Value, plain: Value, own: Rounding, inherited: Rounding) -> Look:
    """Compares a pair in the plain run. `own` is the rounding of one operation, `inherited` the rounding of the whole
    path to this operation."""
    look = Look(pair, Difference(), None, own, mismatch="" if pair.how in ("port", "graph") else mismatch(ours, plain))
    if isinstance(ours, np.ndarray):
        look.shape, look.dtype = tuple(ours.shape), ours.dtype.name
    if look.mismatch:
        if isinstance(ours, np.ndarray) and isinstance(plain, np.ndarray):
            look.reshaped = ours.size == plain.size and ours.dtype == plain.dtype
        return look
    look.inherited = value_difference(ours, plain, own)
    look.suspicious = bool(look.inherited.reason)
    if look.suspicious:
        look.inherited = _widened(look.inherited, ours, inherited) or value_difference(ours, plain, inherited)
    look.nonfinite = _nonfinite(ours), _nonfinite(plain)
    says_something = look.inherited.reason or pair.how == "port"  # metrics take time: only if they inform
    if says_something and isinstance(ours, np.ndarray) and isinstance(plain, np.ndarray) and ours.shape == plain.shape:
        look.metrics = measures(ours, plain)
    return look


def _widened(found: Difference, ours: Value, rounding: Rounding) -> Difference | None:
    """Returns the difference without its reason if it is within a wider tolerance; None if the difference has to be
    measured again."""
    measured = isinstance(ours, np.ndarray) and is_float(ours) and found.worst_rel > 0
    return replace(found, reason="") if measured and found.worst_rel <= rounding.tolerance else None


def value_difference(reference: Value, candidate: Value, rounding: Rounding) -> Difference:
    """Compares two values of one tensor; floats of different widths are compared as numbers."""
    arrays = isinstance(reference, np.ndarray) and isinstance(candidate, np.ndarray)
    if arrays and not mismatch(reference, candidate):
        ours, theirs = np.asarray(reference), np.asarray(candidate)
        if rounding.levels and not is_float(ours) and _levels(ours, theirs) <= rounding.levels:
            return Difference(compared=ours.size)
        if ours.dtype != theirs.dtype:
            reference, candidate = widen(ours), widen(theirs)
    reference, candidate = _unmasked(reference, candidate)
    found = difference(reference, candidate, *rounding.bounds)
    return found if found.reason else replace(found, reason=beyond_noise(reference, candidate, rounding))


def is_as_exact(exact: Value, reference: Value, candidate: Value, rounding: Rounding, times: float = 1.0) -> bool:
    """Whether the candidate's value is as close to the exact float64 value as the reference's value is, or differs from
    it by rounding only. The candidate's worst element may be `times` as far off as the reference's. False if there is
    no exact value."""
    if not isinstance(exact, np.ndarray) or exact.dtype.kind not in "fc":
        return False
    mine, theirs = widen(np.asarray(reference)), widen(np.asarray(candidate))
    own = difference(exact, mine, np.inf)
    if own.reason:
        return False
    if difference(exact, theirs, max(rounding.tolerance, times * own.worst_rel), rounding.floor).reason:
        return False
    # One element in which the reference is far off does not excuse errors in all others: compare mean squares too.
    usual = max(rms(mine - exact), rounding.tolerance / FACTOR * rms(exact), rounding.floor)
    return rms(theirs - exact) <= FACTOR * usual


_MASKED = -1e30
"""Bounds the values that hide an element from a softmax: this value and any below. A choice: exporters write the
dtype's lowest value, or -inf."""


def _unmasked(reference: Value, candidate: Value) -> tuple[Value, Value]:
    """Sets the elements that a mask hides in both values to 0, because they would set the scale of all others."""
    if not isinstance(reference, np.ndarray) or not isinstance(candidate, np.ndarray):
        return reference, candidate
    if reference.dtype.kind != "f" or candidate.dtype.kind != "f" or reference.shape != candidate.shape:
        return reference, candidate
    limit = max(_MASKED, *(float(np.finfo(one.dtype).min) for one in (reference, candidate)))
    hidden = (reference <= limit) & (candidate <= limit) & np.isfinite(reference) & np.isfinite(candidate)
    if not hidden.any() or hidden.all():
        return reference, candidate
    return np.where(hidden, reference.dtype.type(0), reference), np.where(hidden, candidate.dtype.type(0), candidate)


def _levels(reference: Array, candidate: Array) -> float:
    """Returns the largest difference of two arrays of integers."""
    return float(np.max(np.abs(widen(reference) - widen(candidate)), initial=0.0))


def mismatch(reference: Value, candidate: Value) -> str:
    """Returns why two values cannot belong to one tensor; "" if they can. Floats of different widths may belong to one
    tensor."""
    if isinstance(reference, list) or isinstance(candidate, list) or reference is None or candidate is None:
        return "" if type(reference) is type(candidate) else "one side is a tensor, the other is not"
    if reference.shape != candidate.shape:
        return f"shape {list(reference.shape)} in the reference, {list(candidate.shape)} in the candidate"
    if reference.dtype != candidate.dtype and not (is_float(reference) and is_float(candidate)):
        return f"dtype {reference.dtype} in the reference, {candidate.dtype} in the candidate"
    return ""


def _nonfinite(value: Value) -> int:
    if not isinstance(value, np.ndarray) or not is_float(value):
        return 0
    return int(value.size - np.isfinite(widen(value)).sum())
