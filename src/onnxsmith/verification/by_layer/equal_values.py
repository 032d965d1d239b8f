"""Pairs tensors with equal values. This is the last way of pairing, for files in which a tool renamed everything."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from onnxsmith.runtimes.base import Feeds, Value
from onnxsmith.verification.by_layer.alignment import Alignment, Pair
from onnxsmith.verification.by_layer.chunks import chunks
from onnxsmith.verification.by_layer.tap import Tap
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.value_comparison import is_float

_NEAR = 1e-3
"""Limits the difference of two prints, relative to the tensor's scale. A choice: more than rounding, less than the
difference of two unrelated tensors."""
_LEAST = 8
"""Names the least number of elements of a tensor that is paired by value. A choice: few elements are often equal by
chance."""


def equal_values(
    reference: Tap,
    candidate: Tap,
    before: Alignment,
    feeds: tuple[Feeds, Feeds],
    budget: int,
    *,
    forced: bool = False,
) -> Iterator[tuple[str, str]]:
    """Yields pairs of unpaired tensors with the same shape and nearly equal values, if no other tensor has these
    values. With `forced`, the candidate computes from the reference's values at paired tensors, so that values after an
    error are equal again.

    A step may change nothing on this input (a Slice of everything, a Relu of positive values). Tensors that are equal
    for this reason form a row, represented by its first tensor. Two rows of the same length are paired element by
    element.
    """
    ours = _rows(reference, _prints(reference, before.left_reference, feeds[0], budget))
    given = _handed(reference, before, feeds[0]) if forced else {}
    theirs = _rows(candidate, _prints(candidate, before.left_candidate, feeds[1], budget, given))
    for key, group in theirs.items():
        others = sorted(ours.get(key, ()))
        for print_, row in group:
            near = _near(print_, others)
            if len(near) == 1 and len(_near(near[0][0], sorted(group))) == 1:
                other = near[0][1]
                yield from zip(other, row, strict=True) if len(other) == len(row) else [(other[0], row[0])]


Print = tuple[float, float]
"""Holds the projection of the values on a fixed random vector, divided by the scale of the values, and this scale."""


Row = tuple[str, ...]
"""Lists tensors with equal values, each computed from the tensor before it."""
Key = tuple[str, tuple[int, ...]]


def fits(reference: Tap, before: Alignment, feeds: Feeds, budget: int) -> bool:
    """Whether all paired tensors together fit into the budget."""
    sizes = reference.nbytes(feeds)
    return sum(sizes.get(pair.reference, 0) for pair in before.pairs) <= budget


def _handed(reference: Tap, before: Alignment, feeds: Feeds) -> dict[str, Value]:
    names = dict.fromkeys(pair.reference for pair in before.pairs if pair.reference not in feeds)
    values = {**feeds, **reference.values(feeds, list(names))}
    return {pair.candidate: values[pair.reference] for pair in before.pairs}


def _prints(
    tap: Tap, names: Sequence[str], feeds: Feeds, budget: int, given: Mapping[str, Value] | None = None
) -> dict[Key, list[tuple[Print, str]]]:
    found: dict[Key, list[tuple[Print, str]]] = defaultdict(list)
    for chunk in chunks([Pair(name, name, "") for name in names], tap.nbytes(feeds), budget):
        for name, value in tap.forced(feeds, given or {}, [pair.candidate for pair in chunk]).items():
            if isinstance(value, np.ndarray) and (print_ := _print(value)) is not None:
                found["float", value.shape].append((print_, name))
    return found


def _rows(tap: Tap, prints: Mapping[Key, list[tuple[Print, str]]]) -> dict[Key, list[tuple[Print, Row]]]:
    """Groups tensors of the same shape and print into rows. In a row, each tensor is computed from the tensor before
    it."""
    found: dict[Key, list[tuple[Print, Row]]] = {}
    order = {name: number for number, name in enumerate(tap.outline.tensors())}
    for key, group in prints.items():
        rows: dict[str, list[str]] = {}  # each row by its last tensor
        known: dict[str, Print] = {name: print_ for print_, name in group}
        for name in sorted(known, key=order.__getitem__):
            step = tap.outline.step_of(name)
            read = [] if step is None else [one for one in step.inputs if one in rows]
            same = [one for one in read if _is_near(known[one], known[name])]
            rows[name] = [*(rows.pop(same[0]) if same else ()), name]
        found[key] = [(known[row[0]], tuple(row)) for row in rows.values()]
    return found


def _print(value: Value) -> Print | None:
    if not isinstance(value, np.ndarray) or not is_float(value) or value.size < _LEAST:
        return None
    flat = widen(value).ravel()
    scale = rms(flat)
    if not np.isfinite(scale) or scale == 0 or np.ptp(flat) == 0:
        return None
    signs = np.random.default_rng(flat.size).standard_normal(flat.size)
    return float(flat @ signs / (scale * np.sqrt(flat.size))), scale


def _near(print_: Print, others: Sequence[tuple[Print, Row]]) -> list[tuple[Print, Row]]:
    first = bisect.bisect_left(others, ((print_[0] - _NEAR, 0.0), ()))
    found = []
    for other in others[first:]:
        if other[0][0] > print_[0] + _NEAR:
            break
        if _is_near(other[0], print_):
            found.append(other)
    return found


def _is_near(print_: Print, other: Print) -> bool:
    return abs(print_[0] - other[0]) <= _NEAR and abs(print_[1] - other[1]) <= _NEAR * other[1]
