"""Finds and computes the values of a graph that do not depend on its inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.runtimes.base import Array, Feeds
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.value_comparison import is_float

_NEAR = 2.0**-20
"""The difference of two weights, relative to their scale, that computing them in different ways explains. A choice:
some units in the last place of float32."""


class StoredValues:
    """The values of one side that do not depend on its inputs: weights, and values computed only from weights."""

    def __init__(self, tap: OnnxTap, feeds: Feeds) -> None:
        self._tap, self._feeds = tap, feeds
        self._known: dict[str, Array | None] = {}

    def has(self, value: ir.Value | None) -> bool:
        """Whether a value does not depend on the inputs."""
        if value is None or value.is_graph_input():
            return False
        return value.const_value is not None or (value.name or "") not in self._tap.outline.moving

    def fetch(self, values: Iterable[ir.Value | None]) -> None:
        """Computes, in one run, the values that are not stored in the file."""
        asked = {v.name or "": None for v in values if v is not None and self.has(v) and v.const_value is None}
        names = [name for name in asked if name not in self._known]
        if not names:
            return
        try:
            made = self._tap.values(self._feeds, names)
        except OnnxsmithError:
            made = {}
        for name in names:
            value = made.get(name)
            self._known[name] = value if isinstance(value, np.ndarray) else None

    def array(self, value: ir.Value | None) -> Array | None:
        """Returns the value as an array; None if it is not an array, or cannot be computed."""
        if value is None or not self.has(value):
            return None
        if value.const_value is not None:
            return value.const_value.numpy() if value.const_value.dtype != ir.DataType.STRING else None
        self.fetch([value])
        return self._known[value.name or ""]


def differ(reference: Array, candidate: Array) -> bool:
    """Whether two stored values differ by more than computing them in different ways explains."""
    return reference.shape != candidate.shape or bool(differing(reference, candidate).any())


def differing(reference: Array, candidate: Array) -> Array:
    """Returns where two stored values of one shape differ by more than computing them in different ways explains."""
    if not is_float(reference) or not is_float(candidate):
        return np.asarray(reference != candidate)
    ours, theirs = widen(reference), widen(candidate)
    with np.errstate(invalid="ignore"):
        apart = np.abs(ours - theirs)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    near = max(_NEAR, float(np.finfo(candidate.dtype).eps) if candidate.dtype.kind == "f" else 0.0)
    return np.asarray(~(same | (apart <= near * (rms(ours) + np.abs(ours)))))


def layout(reference: Array, candidate: Array) -> tuple[str, tuple[tuple[str, object], ...]] | None:
    """Returns how a weight with the reference's numbers in another order becomes the reference's weight. The result has
    words, and steps (`reshape`, `transpose` or `gather`, with their arguments). None if no simple order does it."""
    if reference.size != candidate.size or reference.ndim != candidate.ndim or reference.size < 2:
        return None
    if not np.array_equal(np.sort(reference, axis=None), np.sort(candidate, axis=None)):
        return None
    for order in itertools.permutations(range(candidate.ndim)):
        turned = tuple(reference.shape[axis] for axis in np.argsort(order))
        if np.array_equal(candidate.reshape(turned).transpose(order), reference):
            steps: list[tuple[str, object]] = [] if turned == candidate.shape else [("reshape", list(turned))]
            if order != tuple(range(candidate.ndim)):
                steps.append(("transpose", list(order)))
            return f"its axes are in the order {list(order)} in the reference", tuple(steps)
    if reference.shape != candidate.shape:
        return None
    for axis, size in enumerate(candidate.shape):
        for said, rows in _orders(size):
            if np.array_equal(np.take(candidate, rows, axis), reference):
                return f"{said} along axis {axis} in the reference", (("gather", (axis, rows)),)
    flipped = [axis for axis, size in enumerate(candidate.shape) if size > 1]
    for count in range(2, len(flipped) + 1):
        for axes in itertools.combinations(flipped, count):
            if np.array_equal(np.flip(candidate, axes), reference):
                gathers = tuple(("gather", (axis, list(range(candidate.shape[axis]))[::-1])) for axis in axes)
                return f"its elements are reversed along axes {list(axes)} in the reference", gathers
    return None


_BLOCKS = (2, 3, 4)
"""Numbers of blocks that may be exchanged: gates of a recurrent layer, or query, key and value."""


def _orders(size: int) -> Iterable[tuple[str, list[int]]]:
    """Yields orders of an axis's elements that mistakes produce: reversed, blocks exchanged, blocks interleaved."""
    places = np.arange(size)
    yield "its elements are reversed", places[::-1].tolist()
    for count in _BLOCKS:
        if size % count or size == count == 1:
            continue
        blocks = places.reshape(count, -1)
        for order in itertools.permutations(range(count)):
            if order != tuple(range(count)):
                yield f"its {count} blocks are in the order {list(order)}", blocks[list(order)].ravel().tolist()
    for count in range(2, size):
        if size % count == 0:
            yield f"its elements are taken from {count} blocks in turn", places.reshape(count, -1).T.ravel().tolist()
