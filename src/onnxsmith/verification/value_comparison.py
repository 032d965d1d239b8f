"""Compares two values of one output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from onnxsmith.verification.metrics.base import blocks, widen
from onnxsmith.verification.metrics.distances import largest, rms

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """Describes the difference of one output in one run.

    `worst_abs` is in the output's units; `worst_rel` is relative to its scale; `scale` is the reference's root mean
    square; `spread` is the difference's root mean square relative to `scale`. `compared` counts informative elements:
    pairs with at least one finite value, and integers, bools and strings; `unequal` counts those that differ. `reason`
    is empty if the values agree.
    """

    reason: str = ""
    worst_abs: float = 0.0
    worst_rel: float = 0.0
    scale: float = 0.0
    compared: int = 0
    spread: float = 0.0
    unequal: int = 0

    @property
    def is_exact(self) -> bool:
        """Whether the values are equal, not only close."""
        return not self.reason and self.worst_abs == 0


def difference(
    reference: Any, candidate: Any, tolerance: float, floor: float = 0.0, spread: float = np.inf
) -> Difference:
    """Compares two values of any kind that a runtime returns: arrays, sequences, absent optionals. Floats may differ by
    `tolerance` relative to their scale, or by `floor` in their own units. The difference of floats in root mean square
    may be at most `spread`."""
    if isinstance(reference, list) or isinstance(candidate, list):
        return _sequences(reference, candidate, tolerance, floor, spread)
    if reference is None or candidate is None:
        return Difference("" if reference is candidate else "one side has a value, the other has none", compared=1)
    layout = layout_difference(reference, candidate)
    reference, candidate = np.asarray(reference), np.asarray(candidate)
    if layout.reason or reference.size == 0:
        return layout
    if is_float(reference):
        return _floats(_real(reference), _real(candidate), tolerance, floor, spread)
    return _exact(reference, candidate)


def layout_difference(reference: Any, candidate: Any) -> Difference:
    """Compares dtype and shape only; no element counts as compared."""
    if isinstance(reference, list) or isinstance(candidate, list):
        return _sequences(reference, candidate, np.inf, np.inf, np.inf)
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


def unit(value: Any) -> float:
    """Returns the unit roundoff of the value's dtype; 0 if the dtype is not float."""
    if isinstance(value, list):
        return max((unit(item) for item in value), default=0.0)
    array = np.asarray(value)
    if not is_float(array):
        return 0.0
    if array.dtype.kind == "c":
        return 2.0**-24 if array.dtype.itemsize == 8 else 2.0**-53
    return float(ml_dtypes.finfo(array.dtype).eps) / 2  # type: ignore[no-untyped-call]


def _kind(array: Array) -> str:
    return "string" if array.dtype.kind in "OUS" else array.dtype.name


def _sequences(reference: Any, candidate: Any, tolerance: float, floor: float, spread: float) -> Difference:
    if not isinstance(reference, list) or not isinstance(candidate, list):
        return Difference("one side is a sequence, the other a tensor")
    if len(reference) != len(candidate):
        return Difference(f"a sequence of {len(reference)} became one of {len(candidate)}")
    items = [difference(a, b, tolerance, floor, spread) for a, b in zip(reference, candidate, strict=True)]
    bad = [f"item {index}: {item.reason}" for index, item in enumerate(items) if item.reason]
    return Difference(
        bad[0] if bad else "",
        max((item.worst_abs for item in items), default=0.0),
        max((item.worst_rel for item in items), default=0.0),
        max((item.scale for item in items), default=0.0),
        sum(item.compared for item in items),
        max((item.spread for item in items), default=0.0),
        sum(item.unequal for item in items),
    )


def _real(array: Array) -> Array:
    return widen(array) if array.dtype.kind == "c" else array


def _floats(reference: Array, candidate: Array, tolerance: float, floor: float, spread: float) -> Difference:
    # The usual case first: block by block, without copies of the size of a large tensor.
    if all(np.isfinite(piece).all() for pair in blocks(reference, candidate) for piece in pair):
        return _finite(reference, candidate, tolerance, floor, spread)
    a, b = widen(reference), widen(candidate)
    nan = np.isnan(a)
    if not np.array_equal(nan, np.isnan(b)):
        count = int(np.sum(nan != np.isnan(b)))
        return Difference(f"{count} of {a.size} elements are NaN on one side only", compared=a.size)
    infinite = np.isinf(a) | np.isinf(b)
    if not np.array_equal(a[infinite], b[infinite]):
        count = int(np.sum(a[infinite] != b[infinite]))
        return Difference(f"{count} of {a.size} infinities differ", np.inf, np.inf, compared=a.size)
    rest, held = ~(nan | infinite), int(infinite.sum())
    if not rest.any():
        return Difference(compared=held)
    found = _finite(a[rest], b[rest], tolerance, floor, spread, of=a.size)
    return replace(found, compared=found.compared + held)


def _finite(
    reference: Array, candidate: Array, tolerance: float, floor: float, spread: float, of: int | None = None
) -> Difference:
    scale = rms(reference)
    absolute, relative = largest(reference, candidate, scale)
    apart = _spread(reference, candidate, scale) if absolute else 0.0
    over, reason = 0, ""
    if relative > tolerance and absolute > floor:
        over = sum(
            int(np.sum(np.abs(a - b) > np.maximum(tolerance * (scale + np.abs(a)), floor)))
            for a, b in blocks(reference, candidate)
        )
        reason = f"{over} of {of or reference.size} elements are further apart than rounding explains"
    elif apart > spread and absolute > floor:
        reason = (
            "each element alone is within the limit, but not all together: the root mean square of the differences is "
            f"{apart:.1e} of the output's, where rounding explains {spread:.1e}"
        )
    return Difference(reason, absolute, relative, scale, reference.size, apart)


def _spread(reference: Array, candidate: Array, scale: float) -> float:
    """Computes the root mean square of the difference, relative to `scale`."""
    if not scale:  # the reference is zero: any difference is infinitely large beside it
        return float("inf")
    with np.errstate(over="ignore"):
        squares = (float(np.sum(((a - b) / scale) ** 2)) for a, b in blocks(reference, candidate))
        return float(np.sqrt(sum(squares) / reference.size))


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
    return Difference(reason, absolute, 1.0 if count else 0.0, _scale(reference), reference.size, unequal=count)


def _scale(array: Array) -> float:
    return 1.0 if array.dtype.kind in "OUS" else rms(widen(array))


def near(wanted: Any, found: Any, relative: float) -> bool:
    """Whether two arrays have one shape, and floats differ by no more than `relative` of the largest magnitude of
    `wanted`. Other dtypes have to be equal. Use it to choose between possibilities; `difference` judges a model."""
    if not isinstance(wanted, np.ndarray) or wanted.shape != np.shape(found):
        return False
    if wanted.dtype.kind not in "fc":
        return bool(np.array_equal(wanted, found))
    a, b = np.nan_to_num(wanted), np.nan_to_num(found)
    return bool(np.abs(a - b).max(initial=0) <= relative * max(float(np.abs(a).max(initial=0)), 1e-30))
