"""Tensors that have no name in common and equal values all the same: what is left when a tool has renamed
everything."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from onnxsmith.comparison.tensors import is_float
from onnxsmith.layers.alignment import Alignment, Pair
from onnxsmith.layers.chunks import chunks
from onnxsmith.layers.tap import Tap
from onnxsmith.metrics.base import widen
from onnxsmith.metrics.max_rel import rms
from onnxsmith.runtimes.base import Feeds, Value

_NEAR = 1e-3
"""How far two prints may be apart, relative to the tensor's scale: more than rounding, less than another tensor."""
_LEAST = 8
"""Tensors with fewer elements are too easily alike."""


def equal_values(
    reference: Tap, candidate: Tap, before: Alignment, feeds: tuple[Feeds, Feeds], budget: int
) -> Iterator[tuple[str, str]]:
    """Pairs of tensors of one shape, not yet paired, whose values are alike, and like no other's."""
    ours = _prints(reference, before.left_reference, feeds[0], budget)
    theirs = _prints(candidate, before.left_candidate, feeds[1], budget)
    for key, group in theirs.items():
        others = sorted(ours.get(key, ()))
        for print_, name in group:
            near = _near(print_, others)
            if len(near) == 1 and len(_near(near[0][0], sorted(group))) == 1:
                yield near[0][1], name


Print = tuple[float, float]
"""A projection of the values on a fixed random vector, over their scale; and the scale."""


def _prints(
    tap: Tap, names: Sequence[str], feeds: Feeds, budget: int
) -> Mapping[tuple[str, tuple[int, ...]], list[tuple[Print, str]]]:
    found: dict[tuple[str, tuple[int, ...]], list[tuple[Print, str]]] = defaultdict(list)
    for chunk in chunks([Pair(name, name, "") for name in names], tap.nbytes(feeds), budget):
        for name, value in tap.values(feeds, [pair.candidate for pair in chunk]).items():
            if isinstance(value, np.ndarray) and (print_ := _print(value)) is not None:
                found["float", value.shape].append((print_, name))
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


def _near(print_: Print, others: Sequence[tuple[Print, str]]) -> list[tuple[Print, str]]:
    first = bisect.bisect_left(others, ((print_[0] - _NEAR, 0.0), ""))
    found = []
    for other in others[first:]:
        if other[0][0] > print_[0] + _NEAR:
            break
        if abs(other[0][1] - print_[1]) <= _NEAR * print_[1]:
            found.append(other)
    return found
