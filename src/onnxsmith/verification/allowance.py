"""Computes how much an output may differ on one input: the measured effect of rounding, at most the bound from counting
operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnxsmith.verification.explore import Run
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.noise import ALL, FIRST, SECOND, SPREAD, WORST, Movement, Noise
from onnxsmith.verification.rounding import FACTOR, Rounding
from onnxsmith.verification.value_comparison import Difference, difference, is_float, unit

_SINGLE = 2.0**-24
"""Holds the unit roundoff of float32, in which kernels accumulate coarser dtypes (IEEE 754: 24 bits of significand)."""
_LITTLE = 3.0
"""Holds the largest rounding error of one operation, in multiples of its root mean square. A choice: the maximum of a
few hundred normally distributed errors is about three standard deviations."""
_BOTH = 2.0
"""Doubles the bound, because both the reference and the candidate round."""
_ROUNDING = 8.0
"""Limits a movement that counts as rounding, in roundings of one operation. A choice: a quantiser's steps are far
larger."""
_MANY = 32
"""Names the least number of elements with a meaningful root mean square. A choice: with fewer elements, the root mean
square is nearly as large as the maximum."""


@dataclass(frozen=True)
class Allowed:
    """Holds the difference that is allowed for one output on one input.

    `worst` is the largest difference relative to the output's scale. `spread` is the root mean square of the
    difference, also relative to the scale. `floor` is in the output's units. `changed` is the allowed number of unequal
    elements, if the other elements have to be equal. `ill` says why this input cannot decide about the output.
    `measured` is True if the bounds follow from measured movement, not from the count of operations alone. `rounding`
    is the count for this run, if it is larger than the file's.
    """

    worst: float
    spread: float = np.inf
    floor: float = 0.0
    changed: int = 0
    ill: str = ""
    measured: bool = False
    rounding: Rounding | None = None


class Allowance:
    """Computes the allowed difference of each output.

    `scale` says how many times coarser the candidate computes than the reference, by the count of operations. Without
    `noise`, only the count of operations is used. If both sides run the `same` model, differences up to the counted
    bound are rounding even if less movement was measured: a model cannot differ from itself. `sized` counts again for
    the sizes of one run; it is called if an output differs by more than the file's count explains.
    """

    def __init__(
        self,
        roundings: Mapping[str, Rounding],
        noise: Noise | None = None,
        scale: Mapping[str, float] | None = None,
        *,
        same: bool = False,
        sized: Callable[[Mapping[str, int]], Mapping[str, Rounding]] | None = None,
    ) -> None:
        self._roundings = roundings
        self._sized = sized
        self._counts: dict[tuple[tuple[str, int], ...], Mapping[str, Rounding]] = {}
        self._noise = noise
        self._scale = scale or {}
        self._same = same
        self._largest: dict[str, float] = {}
        """Holds the largest difference of each output that rounding does not explain, on any input so far."""

    def counted(self, name: str) -> Allowed:
        """Returns the bound from counting operations, or the tolerance that the user asked for."""
        return _of(self._roundings.get(name))

    def judged(self, run: Run, name: str, value: Any) -> tuple[Difference, Allowed]:
        """Returns the difference of `value` from the reference's output in `run`. The difference has a reason if it
        exceeds the bound."""
        found, allowed = self._judged_by(self._roundings.get(name), run, name, value)
        here = self._in_run(run, name) if found.reason and not found.unequal else None
        if here is not None:
            found, allowed = self._judged_by(here, run, name, value)
            allowed = replace(allowed, rounding=here)
        if found.reason:
            self._largest[name] = max(found.worst_rel, self._largest.get(name, 0.0))
        return found, allowed

    def _in_run(self, run: Run, name: str) -> Rounding | None:
        """Returns the count for the sizes of this run, if it allows more than the file's."""
        known = self._roundings.get(name)
        if self._sized is None or known is None or known.given is not None:
            return None
        sizes = tuple(sorted(run.feed.sizes.items()))
        if sizes not in self._counts:
            self._counts[sizes] = self._sized(dict(sizes))
        here = self._counts[sizes].get(name)
        return here if here is not None and here.tolerance > known.tolerance else None

    def _judged_by(self, rounding: Rounding | None, run: Run, name: str, value: Any) -> tuple[Difference, Allowed]:
        ours, cap = run.outputs[name], _of(rounding)
        asked = rounding is None or rounding.given is not None
        fine = cap if asked else self._fine(ours, cap, name)
        found = difference(ours, value, fine.worst, fine.floor, fine.spread)
        if not found.reason or asked or self._noise is None:
            return (found, fine) if not found.reason or asked else (difference(ours, value, cap.worst, cap.floor), cap)
        assert rounding is not None
        # A dtype, shape or NaN differs: this is excused only if rounding changes the output in this way.
        if not found.unequal and not found.spread:
            movement = self._noise.movement(run, name)
            unsteady = movement.unsteady if movement is not None else ""
            return found, Allowed(cap.worst, ill=f"rounding alone decides this: {unsteady}" if unsteady else "")
        # More samples, and steps of quantisers, count only if fewer do not explain the difference: a bound from fewer
        # samples is no larger. Many samples are taken only for what may be the largest difference: one input decides
        # that an output differs.
        known = run.generated and found.worst_rel <= self._largest.get(name, 0.0)
        tries = (*_WITHOUT_STEPS, (ALL, True)) if rounding.stepped else _WITHOUT_STEPS
        for samples, steps in ((SECOND, bool(rounding.stepped)),) if known else tries:
            moved = self._noise.movement(run, name, samples)
            allowed = self._measured(run, moved, fine, cap, rounding if steps else replace(rounding, steps=0.0), name)
            found = _held(ours, value, allowed)
            if not found.reason:
                break
        if found.reason and self._same:
            counted = difference(ours, value, cap.worst, cap.floor)
            found, allowed = (found, allowed) if counted.reason else (counted, cap)
        if found.reason:  # more than rounding explains, even for an ill-conditioned input
            return found, replace(allowed, ill="")
        if allowed.ill and found.worst_rel <= cap.worst:
            return found, replace(allowed, worst=cap.worst, ill="")
        return found, allowed

    def _fine(self, value: Any, cap: Allowed, name: str) -> Allowed:
        """Returns the rounding of a single operation: the smallest difference that is always allowed."""
        worst = self.finest(value, name)
        spread = worst / _LITTLE if _count(value) >= _MANY else np.inf
        return Allowed(min(worst, cap.worst), spread, cap.floor)

    def finest(self, value: Any, name: str) -> float:
        """Returns the error of one operation, relative to the output's scale."""
        u, cap = unit(value), self.counted(name).worst
        return min(2 * u + 2 * FACTOR * min(u, _SINGLE), cap) * max(self._scale.get(name, 1.0), 1.0)

    def usual(self, value: Any, name: str, allowed: Allowed | None) -> float:
        """Returns the usual difference of two correct computations, relative to the output's scale. This is the
        measured movement, or the rounding of one operation if that is larger. The difference is capped, because a
        quantiser may enlarge a movement."""
        finest = self.finest(value, name)
        seen = _BOTH * allowed.worst / WORST if allowed is not None and allowed.measured else 0.0
        return min(max(finest, seen), _ROUNDING * finest)

    def _measured(
        self, run: Run, movement: Movement | None, fine: Allowed, cap: Allowed, rounding: Rounding, name: str
    ) -> Allowed:
        if movement is None:
            return cap
        if movement.unsteady:
            return Allowed(np.inf, ill=f"rounding alone changes it: {movement.unsteady}")
        scale = max(self._scale.get(name, 1.0), 1.0)
        unmoved, stepped = rounding.unmoved(_longest(run)), rounding.stepped
        worst = max(WORST * movement.worst * scale, fine.worst, FACTOR * stepped) + unmoved
        spread = max(SPREAD * movement.spread * scale, fine.spread, stepped) + unmoved / _LITTLE
        ill = movement.worst * scale > cap.worst
        return Allowed(
            worst if ill else min(worst, cap.worst),
            spread,
            max(WORST * movement.absolute * scale, cap.floor) if ill else cap.floor,
            int(WORST * movement.changed),
            f"rounding alone moves it by {movement.worst:.1e} of its scale" if ill else "",
            measured=True,
        )


_WITHOUT_STEPS = ((FIRST, False), (SECOND, False), (ALL, False))


def _of(rounding: Rounding | None) -> Allowed:
    return Allowed(0.0) if rounding is None else Allowed(rounding.tolerance, floor=rounding.floor)


def _longest(run: Run) -> int:
    """Returns the longest axis of all inputs and outputs."""
    arrays = [value for value in (*run.feed.values.values(), *run.outputs.values()) if isinstance(value, np.ndarray)]
    return max((size for array in arrays for size in array.shape), default=1)


def _held(reference: Any, candidate: Any, allowed: Allowed) -> Difference:
    found = difference(reference, candidate, allowed.worst, allowed.floor, allowed.spread)
    if found.unequal and found.unequal <= allowed.changed:
        return Difference("", found.worst_abs, found.worst_rel, found.scale, found.compared, unequal=found.unequal)
    return found


def _count(value: Any) -> float:
    """Returns the effective number of elements that determine an output's scale. The number is small if a few elements
    are far larger than the rest (participation ratio of the squares, (Σs)²/Σs²)."""
    if isinstance(value, list):
        return min((_count(item) for item in value), default=0.0)
    array = np.asarray(value)
    if not is_float(array) or not array.size:
        return 0.0
    sizes = np.abs(widen(array).ravel())
    sizes = sizes[np.isfinite(sizes)]
    peak = float(sizes.max()) if sizes.size else 0.0
    shares = (sizes / peak) ** 2 if peak else sizes
    return float(shares.sum() ** 2 / (shares**2).sum()) if peak else 0.0
