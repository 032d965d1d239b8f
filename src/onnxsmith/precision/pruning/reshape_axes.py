"""Matches the axes before a Reshape with the axes after it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes.facts import Element
from onnxsmith.precision.pruning.channel_links import Indices, Sizes, static


@dataclass(frozen=True)
class Run:
    """Adjacent axes with the same number of elements before and after a Reshape, as few as possible."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def is_same(self) -> bool:
        """Whether the run is a single axis that stays as it is."""
        return len(self.before) == len(self.after) == 1

    def sizes(self, value: ir.Value, *, after: bool = False) -> tuple[int | None, ...]:
        """Returns the sizes of the axes."""
        return tuple(static(value, axis) for axis in (self.after if after else self.before))


def runs(before: Sequence[Element | None], after: Sequence[Element | None]) -> list[Run]:
    """Divides two shapes with equally many elements into runs, from the front and from the back. Leaves out axes in the
    middle whose sizes cannot be compared."""
    front = list(_runs(before, after))
    i, j = sum(len(run.before) for run in front), sum(len(run.after) for run in front)
    back = _runs(before[i:][::-1], after[j:][::-1])
    turned = [Run(_turned(run.before, len(before)), _turned(run.after, len(after))) for run in back]
    return front + turned[::-1]


def _turned(axes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Turns axes that were counted from the back into axes counted from the front."""
    return tuple(count - 1 - axis for axis in reversed(axes))


def _runs(before: Sequence[Element | None], after: Sequence[Element | None]) -> Iterator[Run]:
    i = j = 0
    while i < len(before) and j < len(after):
        first, second = [i], [j]
        while True:
            left, right = _product(before, first), _product(after, second)
            if left is None or right is None:
                return
            if left == right:
                break
            grows_left = _is_part(left, right)
            grows = first if grows_left else second
            if not grows_left and not _is_part(right, left) and left[1] != right[1]:
                return
            if not grows_left and left[1] == right[1] and left[0] < right[0]:
                grows = first
            shape = before if grows is first else after
            if grows[-1] + 1 >= len(shape):
                return
            grows.append(grows[-1] + 1)
        i, j = first[-1] + 1, second[-1] + 1
        while i < len(before) and before[i] == 1 and (j >= len(after) or after[j] != 1):
            first.append(i)
            i += 1
        while j < len(after) and after[j] == 1 and (i >= len(before) or before[i] != 1):
            second.append(j)
            j += 1
        yield Run(tuple(first), tuple(second))


def _product(shape: Sequence[Element | None], axes: Sequence[int]) -> tuple[int, Counter[str]] | None:
    sizes = [shape[axis] for axis in axes]
    if None in sizes:
        return None
    return math.prod(size for size in sizes if isinstance(size, int)), Counter(
        size for size in sizes if isinstance(size, str)
    )


def _is_part(left: tuple[int, Counter[str]], right: tuple[int, Counter[str]]) -> bool:
    return left[1] <= right[1] and right[0] % max(1, left[0]) == 0


def pairs(before: Sizes, after: Sizes, axis: int, place: int) -> tuple[Indices, Indices]:
    """Returns the pairs of an index along an axis before and an index along an axis after that have an element in
    common, each pair once."""
    flat = np.arange(math.prod(before))
    one = flat // math.prod(before[axis + 1 :]) % before[axis]
    two = flat // math.prod(after[place + 1 :]) % after[place]
    found = np.unique(one * after[place] + two)
    return found // after[place], found % after[place]


def channel_axis(before: Sizes, after: Sizes, axis: int, chosen: int | None) -> int:
    """Returns the axis after the Reshape that holds the channels. This is the chosen axis, else the outermost axis
    along which several sets of channels can be removed independently."""
    wide = [place for place, size in enumerate(after) if size > 1]
    if chosen is not None and chosen in wide:
        return chosen
    for place in wide:
        if _count(before, after, axis, place) > 1:
            return place
    return wide[0] if wide else 0


def _count(before: Sizes, after: Sizes, axis: int, place: int) -> int:
    """Counts the sets of channels that can be removed independently."""
    at, to = pairs(before, after, axis, place)
    labels = np.arange(before[axis] + after[place])
    while True:
        low = np.minimum(labels[at], labels[before[axis] + to])
        new = labels.copy()
        np.minimum.at(new, at, low)
        np.minimum.at(new, before[axis] + to, low)
        if np.array_equal(new, labels):
            return len(np.unique(labels))
        labels = new
