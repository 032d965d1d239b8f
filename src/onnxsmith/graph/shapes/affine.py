"""Finds affine integer tensors: each element is a start plus, for each axis, a step times the index along that axis.

Positions and indices are affine: Range makes such tensors, and Unsqueeze, Expand, casts and sums keep them affine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.symbols import Element
from onnxsmith.graph.shapes.value_analysis import Analysis

_MOST_ELEMENTS = 1 << 16
"""Limits the elements of a constant that is examined. A choice that bounds the cost."""
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)


@dataclass(frozen=True)
class Affine:
    """value[i, j, …] = start + steps[0] * i + steps[1] * j + …; the step along an axis of size 1 is 0."""

    start: Element
    steps: tuple[Element, ...]
    limits: tuple[ir.Value | None, ...] = field(default=(), compare=False)
    """Holds for each axis the limit up to which the value counts along it: the limit of its Range, or the end of its
    Slice, a tensor of one element; None if unknown. Empty if all are unknown."""

    @property
    def axes(self) -> list[tuple[Element, ir.Value | None]]:
        """Returns the step and the limit along each axis."""
        return list(zip(self.steps, self.limits or (None,) * len(self.steps), strict=True))


def _counted(array: npt.NDArray[np.generic]) -> Affine | None:
    if not array.size or array.size > _MOST_ELEMENTS or array.dtype.kind not in "iu":
        return None
    first = array[(0,) * array.ndim]
    expected = np.full(array.shape, first, np.int64)
    steps = []
    for axis, size in enumerate(array.shape):
        index = [0] * array.ndim
        index[axis] = min(1, size - 1)
        step = int(array[tuple(index)]) - int(first)
        steps.append(step)
        shape = [1] * array.ndim
        shape[axis] = size
        expected += step * np.arange(size, dtype=np.int64).reshape(shape)
    return Affine(int(first), tuple(steps)) if np.array_equal(array, expected) else None


def _range(walk: _Analysis, node: ir.Node) -> Affine | None:
    start, _, delta = (walk.of(value) for value in node.inputs)
    if start is None or delta is None or start.steps or delta.steps:
        return None
    return Affine(start.start, (delta.start,), (node.inputs[1],))


def _view(walk: _Analysis, node: ir.Node) -> Affine | None:
    """Returns a Reshape, Unsqueeze or Squeeze that only adds or removes axes of size 1."""
    data, before, after = walk.of(node.inputs[0]), facts.dims(node.inputs[0]), facts.dims(node.outputs[0])
    if data is None or before is None or after is None:
        return None
    kept = [dim for dim in before if dim != 1]
    if not facts.same(kept, [dim for dim in after if dim != 1]):
        return None
    rest = iter([axis for axis, dim in zip(data.axes, before, strict=True) if dim != 1])
    return _made(data.start, [(0, None) if dim == 1 else next(rest) for dim in after])


def _widened(walk: _Analysis, value: ir.Value | None, node: ir.Node) -> Affine | None:
    """Returns the value after a broadcast to the shape of the node's result. An axis with a step must keep its size."""
    data, before, after = walk.of(value), facts.dims(value), facts.dims(node.outputs[0])
    if data is None or before is None or after is None or len(before) > len(after):
        return None
    for step, dim, now in zip(data.steps, before, after[len(after) - len(before) :], strict=True):
        if step != 0 and (dim is None or dim != now):
            return None
    return _made(data.start, [*[(0, None)] * (len(after) - len(before)), *data.axes])


def _transpose(walk: _Analysis, node: ir.Node) -> Affine | None:
    data, perm = walk.of(node.inputs[0]), node.attributes.get("perm")
    if data is None or (perm is not None and perm.is_ref()):
        return None
    order = range(len(data.steps))[::-1] if perm is None else perm.as_ints()
    return _made(data.start, [data.axes[axis] for axis in order])


def _combined(operation: Callable[[Element, Element], Element | None], walk: _Analysis, node: ir.Node) -> Affine | None:
    a, b = (_widened(walk, value, node) for value in node.inputs)
    if a is None or b is None:
        return None
    axes = [(operation(x, y), m if x != 0 else n) for (x, m), (y, n) in zip(a.axes, b.axes, strict=True)]
    return _made(operation(a.start, b.start), axes)


def _product(walk: _Analysis, node: ir.Node) -> Affine | None:
    """Returns a product with a constant: one operand has no steps."""
    a, b = (_widened(walk, value, node) for value in node.inputs)
    if a is None or b is None:
        return None
    counting, other = (b, a) if any(step != 0 for step in b.steps) else (a, b)
    if any(step != 0 for step in other.steps):
        return None
    axes = [(symbols.multiply(step, other.start), limit) for step, limit in counting.axes]
    return _made(symbols.multiply(counting.start, other.start), axes)


def _slice(walk: _Analysis, node: ir.Node) -> Affine | None:
    """Returns a Slice with known starts and step 1: the start moves, the steps stay."""
    data = walk.of(node.inputs[0])
    starts = facts.integers(node.inputs[1]) if len(node.inputs) > 2 else None
    axes = facts.integers(node.inputs[3]) if len(node.inputs) > 3 else None
    steps = facts.integers(node.inputs[4]) if len(node.inputs) > 4 else (1,)
    if data is None or starts is None or steps is None or any(step != 1 for step in steps):
        return None
    first: Element | None = data.start
    kept = data.axes
    for axis, start in zip(axes if axes is not None else range(len(starts)), starts, strict=False):
        if not isinstance(axis, int) or not isinstance(start, int) or start < 0 or first is None:
            return None
        skipped = symbols.multiply(data.steps[axis], start)
        first = None if skipped is None else symbols.add(first, skipped)
        kept[axis] = (data.steps[axis], node.inputs[2] if starts == (0,) else None)
    return _made(first, kept)


def _cumulated(walk: _Analysis, node: ir.Node) -> Affine | None:
    """Returns a CumSum of one number everywhere: the running sum grows by that number."""
    data, axis = walk.of(node.inputs[0]), facts.integers(node.inputs[1])
    flags = [node.attributes.get(name) for name in ("exclusive", "reverse")]
    if data is None or axis is None or len(axis) != 1 or not isinstance(axis[0], int) or not data.steps:
        return None
    if any(flag is not None and (flag.is_ref() or flag.as_int()) for flag in flags) or any(s != 0 for s in data.steps):
        return None
    steps: list[Element] = [0] * len(data.steps)
    steps[axis[0]] = data.start
    return Affine(data.start, tuple(steps))


def _filled(walk: _Analysis, node: ir.Node) -> Affine | None:
    value, dims = node.attributes.get("value"), facts.dims(node.outputs[0])
    if value is None or value.is_ref() or dims is None:
        return None
    return Affine(int(value.as_tensor().numpy().ravel()[0]), (0,) * len(dims))


def _gathered(walk: _Analysis, node: ir.Node) -> Affine | None:
    """Returns a Gather from a tensor with one number everywhere: the indices do not matter."""
    data, dims = walk.of(node.inputs[0]), facts.dims(node.outputs[0])
    if data is None or dims is None or any(step != 0 for step in data.steps):
        return None
    return Affine(data.start, (0,) * len(dims))


def _made(start: Element | None, axes: Sequence[tuple[Element | None, ir.Value | None]]) -> Affine | None:
    steps = tuple(step for step, _ in axes if step is not None)
    limits = tuple(limit for _, limit in axes)
    return None if start is None or len(steps) < len(axes) else Affine(start, steps, limits)


class _Analysis(Analysis[Affine]):
    rules: ClassVar = {
        "Add": partial(_combined, symbols.add),
        "Cast": Analysis.first,
        "ConstantOfShape": _filled,
        "CumSum": _cumulated,
        "Expand": lambda walk, node: _widened(walk, node.inputs[0], node),
        **dict.fromkeys(("Gather", "GatherElements", "GatherND"), _gathered),
        "Identity": Analysis.first,
        "Mul": _product,
        "Range": _range,
        **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), _view),
        "Slice": _slice,
        "Sub": partial(_combined, symbols.subtract),
        "Transpose": _transpose,
    }

    def fact(self, value: ir.Value) -> Affine | None:
        if value.dtype not in _INTEGERS:
            return None
        array, dims = facts.constant(value), facts.dims(value)
        if array is not None:
            return _counted(array)
        if dims is None:
            return None
        held = facts.integers(value)
        if held is not None and len(held) == 1:
            return Affine(held[0], (0,) * len(dims))
        found = self.computed(value)
        if found is None or len(found.steps) != len(dims):
            return None
        return replace(found, steps=tuple(0 if dim == 1 else step for step, dim in zip(found.steps, dims, strict=True)))


def affine(value: ir.Value | None) -> Affine | None:
    """Returns start and steps of a value; None if it is not affine, or unknown."""
    return _Analysis().of(value)
