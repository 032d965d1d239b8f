"""Two values of one output, held to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onnxsmith.metrics.base import Floats, widen
from onnxsmith.metrics.max_abs import MaxAbs
from onnxsmith.metrics.max_rel import MaxRel, rms

Array = npt.NDArray[Any]

_ABS, _REL = MaxAbs(), MaxRel()


@dataclass(frozen=True)
class Difference:
    """How one output differs in one run.

    `worst_abs` is in the output's units; `worst_rel` is relative to its scale; `scale` is the reference's root mean
    square; `compared` counts elements that said something: pairs of which at least one is finite, or exact matches of
    integers, bools and strings. `reason` is empty when they agree.
    """

    reason: str = ""
    worst_abs: float = 0.0
    worst_rel: float = 0.0
    scale: float = 0.0
    compared: int = 0


def difference(reference: Any, candidate: Any, tolerance: float, floor: float = 0.0) -> Difference:
    """Compares two values of any kind that a runtime gives: arrays, sequences, absent optionals. Floats may differ by
    `tolerance` relative to their scale, or by `floor` in their own units."""
    if isinstance(reference, list) or isinstance(candidate, list):
        return _sequences(reference, candidate, tolerance, floor)
    if reference is None or candidate is None:
        return Difference("" if reference is candidate else "one side has a value, the other has none", compared=1)
    layout = layout_difference(reference, candidate)
    reference, candidate = np.asarray(reference), np.asarray(candidate)
    if layout.reason or reference.size == 0:
        return layout
    if is_float(reference):
        return _floats(widen(reference), widen(candidate), tolerance, floor)
    return _exact(reference, candidate)


def layout_difference(reference: Any, candidate: Any) -> Difference:
    """Compares dtype and shape alone; no element counts as compared."""
    if isinstance(reference, list) or isinstance(candidate, list):
        return _sequences(reference, candidate, np.inf, np.inf)
    reference, candidate = np.asarray(reference), np.asarray(candidate)
    if _kind(reference) != _kind(candidate):
        return Difference(f"dtype {reference.dtype} became {candidate.dtype}")
    if reference.shape != candidate.shape:
        return Difference(f"shape {list(reference.shape)} became {list(candidate.shape)}")
    return Difference()


def is_float(array: Array) -> bool:
    """Whether rounding applies: floats of every width, and complex numbers."""
    if array.dtype.kind in "fc":
        return True
    return array.dtype.kind == "V" and "float" in array.dtype.name


def _kind(array: Array) -> str:
    return "string" if array.dtype.kind in "OUS" else array.dtype.name


def _sequences(reference: Any, candidate: Any, tolerance: float, floor: float) -> Difference:
    if not isinstance(reference, list) or not isinstance(candidate, list):
        return Difference("one side is a sequence, the other a tensor")
    if len(reference) != len(candidate):
        return Difference(f"a sequence of {len(reference)} became one of {len(candidate)}")
    items = [difference(a, b, tolerance, floor) for a, b in zip(reference, candidate, strict=True)]
    bad = [f"item {index}: {item.reason}" for index, item in enumerate(items) if item.reason]
    return Difference(
        bad[0] if bad else "",
        max((item.worst_abs for item in items), default=0.0),
        max((item.worst_rel for item in items), default=0.0),
        max((item.scale for item in items), default=0.0),
        sum(item.compared for item in items),
    )


def _floats(reference: Floats, candidate: Floats, tolerance: float, floor: float) -> Difference:
    nan = np.isnan(reference)
    if not np.array_equal(nan, np.isnan(candidate)):
        count = int(np.sum(nan != np.isnan(candidate)))
        return Difference(f"{count} of {reference.size} elements are NaN on one side only", compared=reference.size)
    infinite = np.isinf(reference) | np.isinf(candidate)
    if not np.array_equal(reference[infinite], candidate[infinite]):
        count = int(np.sum(reference[infinite] != candidate[infinite]))
        return Difference(f"{count} of {reference.size} infinities differ", np.inf, np.inf, compared=reference.size)
    finite = ~(nan | infinite)
    if not finite.any():
        return Difference(compared=int(infinite.sum()))
    a, b = reference[finite], candidate[finite]
    absolute, relative = _ABS.measure(a, b), _REL.measure(a, b)
    reason = ""
    if relative > tolerance and absolute > floor:
        over = int(np.sum(np.abs(a - b) > np.maximum(tolerance * (rms(a) + np.abs(a)), floor)))
        reason = f"{over} of {reference.size} elements are further apart than rounding explains" if over else ""
    return Difference(reason, absolute, relative, rms(a), int(finite.sum() + infinite.sum()))


def _exact(reference: Array, candidate: Array) -> Difference:
    if reference.dtype.kind in "OUS":
        unequal = np.array([a != b for a, b in zip(reference.ravel(), candidate.ravel(), strict=True)])
        absolute = 0.0
    else:
        unequal = np.asarray(reference != candidate)
        absolute = float(np.max(np.abs(widen(reference) - widen(candidate))))
    count = int(unequal.sum())
    reason = (
        f"{count} of {reference.size} elements differ; integers, bools and strings have to be equal" if count else ""
    )
    return Difference(reason, absolute, 1.0 if count else 0.0, _scale(reference), reference.size)


def _scale(array: Array) -> float:
    return 1.0 if array.dtype.kind in "OUS" else rms(widen(array))
