"""Describes in words how a wrong tensor differs from the right one, if the difference has a simple form.

A form hints at the cause. A factor suggests a scale or an epsilon. A shift suggests a padding. Another order suggests
an axis or the gates of a recurrent layer. A border suggests the padding mode or the alignment of corners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from onnxsmith.base.words import first_few
from onnxsmith.runtimes.base import Value
from onnxsmith.verification.metrics.base import Floats, widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.value_comparison import is_float

_CLOSE = 1e-3
"""Limits the share of the difference that may remain if a form explains the difference. The share also limits the
difference of elements that count as equal, relative to their scale. A choice: far above the rounding of float16."""
_LEAST = 8
"""Names the least number of elements for which a form is searched. A choice: fewer elements have too many forms by
chance."""
_MOST = 2**22
"""Limits the elements for which a form is searched. A choice: the search takes a few tenths of a second."""
_FURTHEST = 3
"""Limits the shift of a tensor and the width of a border, in elements. A choice."""
_FEW = 0.25
"""Limits the share of the places along an axis that counts as "a few of them". A choice."""
_MOSTLY = 0.95
"""Names the share of the differing elements that a form has to explain. A choice: some elements may be equal by
chance."""


def pattern(reference: Value, candidate: Value) -> str:
    """Describes how two tensors of the same shape differ: `times 1.5`, `shifted by 1 along axis 2`; "" without a simple
    form."""
    if not isinstance(reference, np.ndarray) or not isinstance(candidate, np.ndarray):
        return ""
    if reference.shape != candidate.shape or not _LEAST <= reference.size <= _MOST or not is_float(reference):
        return ""
    ours, theirs = widen(reference), widen(np.asarray(candidate))
    if not np.isfinite(ours).all() or not np.isfinite(theirs).all() or rms(ours) == 0:
        return ""
    forms = [look for look in _FORMS if look not in _OF_PLACES or not _is_same(ours, theirs)]
    return next((said for look in forms for said in look(ours, theirs)), "")


def _explains(made: Floats, ours: Floats, theirs: Floats) -> bool:
    """Whether a form of the right tensor equals the wrong tensor, up to a small part of the difference."""
    return bool(rms(theirs - made) <= _CLOSE * rms(theirs - ours))


def _is_same(one: Floats, other: Floats) -> bool:
    return bool(one.size and rms(one - other) <= _CLOSE * max(rms(one), rms(other)))


def _are_moved(one: Floats, other: Floats, ours: Floats, theirs: Floats) -> bool:
    """Whether two tensors that hold the right and the wrong numbers in other places are the same, up to a small part of
    the difference between the right and the wrong tensor."""
    apart = rms(theirs - ours)
    return bool(one.size and rms(one - other) <= _CLOSE * min(apart, max(rms(one), rms(other))))


def _differing(ours: Floats, theirs: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.asarray(np.abs(theirs - ours) > _CLOSE * rms(ours))


def _rounded(ours: Floats, theirs: Floats) -> Iterator[str]:
    """Yields a rounding: to whole numbers, or to float16."""
    if np.array_equal(theirs, np.rint(ours)) or np.array_equal(theirs, np.trunc(ours)):
        yield "whole numbers, as if cast to integers"
    with np.errstate(over="ignore"):
        if np.array_equal(theirs, ours.astype(np.float32).astype(np.float16).astype(theirs.dtype)):
            yield "rounded to float16"


def _scaled(ours: Floats, theirs: Floats) -> Iterator[str]:
    """Yields a factor, or one factor for each place along an axis."""
    factor = float((ours * theirs).sum() / (ours * ours).sum())
    if _explains(ours * factor, ours, theirs):
        yield f"times {factor:.4g}"
    for axis, size in enumerate(ours.shape):
        others = tuple(other for other in range(ours.ndim) if other != axis)
        if not 1 < size < ours.size or not others:
            continue
        squares = (ours * ours).sum(others, keepdims=True)
        factors = (ours * theirs).sum(others, keepdims=True) / np.where(squares == 0, 1, squares)
        if _explains(ours * factors, ours, theirs):
            yield f"times a different factor at each index of axis {axis} ({factors.min():.4g} to {factors.max():.4g})"


def _moved(ours: Floats, theirs: Floats) -> Iterator[str]:
    """Yields an added number, or one number for each place along an axis."""
    apart = theirs - ours
    if _explains(ours + apart.mean(), ours, theirs):
        yield f"plus {apart.mean():.4g}"
    for axis, size in enumerate(ours.shape):
        others = tuple(other for other in range(ours.ndim) if other != axis)
        if not 1 < size < ours.size or not others:
            continue
        if _explains(ours + apart.mean(others, keepdims=True), ours, theirs):
            yield f"plus a different number at each index of axis {axis}, like a bias"


def _turned(ours: Floats, theirs: Floats) -> Iterator[str]:
    """Yields a flip of the tensor, or an exchange of two axes."""
    for axis, size in enumerate(ours.shape):
        if size > 1 and _are_moved(np.flip(ours, axis), theirs, ours, theirs):
            yield f"in reverse order along axis {axis}"
    for one in range(ours.ndim):
        for other in range(one + 1, ours.ndim):
            if ours.shape[one] == ours.shape[other] > 1 and _are_moved(
                np.swapaxes(ours, one, other), theirs, ours, theirs
            ):
                yield f"axes {one} and {other} are exchanged"


def _shifted(ours: Floats, theirs: Floats) -> Iterator[str]:
    """Yields a shift of the tensor by a few places."""
    for axis, size in enumerate(ours.shape):
        for by in range(1, min(_FURTHEST, size - 2) + 1):
            early, late = ([slice(None)] * ours.ndim for _ in range(2))
            early[axis], late[axis] = slice(0, size - by), slice(by, size)
            if _are_moved(ours[tuple(early)], theirs[tuple(late)], ours, theirs):
                yield f"shifted by {by} along axis {axis}"
            if _are_moved(ours[tuple(late)], theirs[tuple(early)], ours, theirs):
                yield f"shifted by -{by} along axis {axis}"


def _reordered(ours: Floats, theirs: Floats) -> Iterator[str]:
    """Yields another order of the slices along an axis, or of all numbers."""
    for axis, size in enumerate(ours.shape):
        if size < 2:
            continue
        rows, others = (np.moveaxis(one, axis, 0).reshape(size, -1) for one in (ours, theirs))
        # Sorted by first element, then by sum, equal slices lie at equal positions.
        order = [np.lexsort((one.sum(1), one[:, 0])) for one in (rows, others)]
        if rows.shape[1] > 1 and _are_moved(rows[order[0]], others[order[1]], ours, theirs):
            yield f"the same slices along axis {axis} in another order"
    if _are_moved(np.sort(ours, axis=None), np.sort(theirs, axis=None), ours, theirs):
        yield "the same numbers in another order"


def _cut(ours: Floats, theirs: Floats) -> Iterator[str]:
    """Yields the value that all differing elements have: a bound, or zero."""
    apart = _differing(ours, theirs)
    values, counts = np.unique(theirs[apart], return_counts=True)
    if not values.size or apart.all():
        return
    most = int(counts.argmax())
    if counts[most] < _MOSTLY * apart.sum() or apart.sum() < 2:
        return
    value = float(values[most])
    # At an end of the range, the value is a bound; inside it, the elements were overwritten.
    if value in (float(theirs.max()), float(theirs.min())) and value != 0:
        yield f"cut off at {value:.4g}"
    else:
        yield f"{value:.4g} where it differs"


def _in_part(ours: Floats, theirs: Floats) -> Iterator[str]:
    """Yields the part with the differing elements: the border, or a few places along one axis."""
    apart = _differing(ours, theirs)
    if not apart.any() or apart.all():
        return
    for axis, size in enumerate(ours.shape):
        others = tuple(other for other in range(ours.ndim) if other != axis)
        places = np.flatnonzero(apart.any(others)) if others else np.flatnonzero(apart)
        if 0 < len(places) <= _FEW * size:
            listed = first_few([*map(str, places)], 4)
            yield f"only at index {listed} of axis {axis}, which has size {size}"
    if ours.ndim < 3:
        return
    inner = apart
    for width in range(1, _FURTHEST + 1):
        sizes = ours.shape[-2:]
        if min(sizes) <= 2 * width + 1:
            return
        inner = apart[..., width : sizes[0] - width, width : sizes[1] - width]
        if not inner.any():
            yield f"only at the border, which is {width} wide"
            return


_FORMS: tuple[Callable[[Floats, Floats], Iterator[str]], ...] = (
    _rounded, _scaled, _moved, _turned, _shifted, _reordered, _cut, _in_part,
)  # fmt: skip
_OF_PLACES = (_turned, _shifted, _reordered)
"""Lists the forms that move numbers. Such forms are not tried if the numbers differ by little at their places: then any
explanation without a move is as good."""
