"""Finds affine integer tensors: each element is a start plus, for each axis, a step times the index along that axis.

Positions and indices are affine: Range makes such tensors, and Unsqueeze, Expand, casts and sums keep them affine. The
search walks up from a value, through at most `_MOST_NODES` nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.symbols import Element

_MOST_NODES = 48
"""Nodes that one search may visit. A choice: position arithmetic of real models takes fewer, and the cost is
bounded."""
_MOST_ELEMENTS = 1 << 16
"""Elements of the largest constant that is examined. A choice that bounds the cost."""
_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)


@dataclass(frozen=True)
class Affine:
    """value[i, j, …] = start + steps[0] * i + steps[1] * j + …; the step along an axis of size 1 is 0."""

    start: Element
    steps: tuple[Element, ...]


def affine(value: ir.Value | None) -> Affine | None:
    """Returns start and steps of a value; None if it is not affine, or unknown."""
    return _Walk().look(value)


class _Walk:
    """One walk upwards, which may still visit `left` nodes."""

    def __init__(self) -> None:
        self.left = _MOST_NODES

    def look(self, value: ir.Value | None) -> Affine | None:
        if value is None or value.dtype not in _INTEGERS:
            return None
        array = facts.constant(value)
        if array is not None:
            return _counted(array)
        dims = facts.dims(value)
        if dims is None:
            return None
        held = facts.integers(value)
        if held is not None and len(held) == 1:
            return Affine(held[0], (0,) * len(dims))
        node = value.producer()
        self.left -= 1
        rule = _RULES.get(node.op_type) if node is not None and not node.domain and self.left >= 0 else None
        found = rule(self, node) if rule is not None and node is not None else None
        if found is None or len(found.steps) != len(dims):
            return None
        return Affine(found.start, tuple(0 if dim == 1 else step for step, dim in zip(found.steps, dims, strict=True)))


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


def _range(walk: _Walk, node: ir.Node) -> Affine | None:
    start, _, delta = (walk.look(value) for value in node.inputs)
    if start is None or delta is None or start.steps or delta.steps:
        return None
    return Affine(start.start, (delta.start,))


def _same(walk: _Walk, node: ir.Node) -> Affine | None:
    return walk.look(node.inputs[0])


def _view(walk: _Walk, node: ir.Node) -> Affine | None:
    """Returns a Reshape, Unsqueeze or Squeeze that only adds or removes axes of size 1."""
    data, before, after = walk.look(node.inputs[0]), facts.dims(node.inputs[0]), facts.dims(node.outputs[0])
    if data is None or before is None or after is None:
        return None
    steps = [step for step, dim in zip(data.steps, before, strict=True) if dim != 1]
    kept = [dim for dim in before if dim != 1]
    if not facts.same(kept, [dim for dim in after if dim != 1]):
        return None
    rest = iter(steps)
    return Affine(data.start, tuple(0 if dim == 1 else next(rest) for dim in after))


def _expand(walk: _Walk, node: ir.Node) -> Affine | None:
    return _widened(walk, node.inputs[0], node)


def _widened(walk: _Walk, value: ir.Value | None, node: ir.Node) -> Affine | None:
    """Returns the value after a broadcast to the shape of the node's result. An axis with a step must keep its size."""
    data, before, after = walk.look(value), facts.dims(value), facts.dims(node.outputs[0])
    if data is None or before is None or after is None or len(before) > len(after):
        return None
    for step, dim, now in zip(data.steps, before, after[len(after) - len(before) :], strict=True):
        if step != 0 and (dim is None or dim != now):
            return None
    return Affine(data.start, (0,) * (len(after) - len(before)) + data.steps)


def _transpose(walk: _Walk, node: ir.Node) -> Affine | None:
    data, perm = walk.look(node.inputs[0]), node.attributes.get("perm")
    if data is None or (perm is not None and perm.is_ref()):
        return None
    order = range(len(data.steps))[::-1] if perm is None else perm.as_ints()
    return Affine(data.start, tuple(data.steps[axis] for axis in order))


def _sum(walk: _Walk, node: ir.Node) -> Affine | None:
    return _combined(walk, node, symbols.add)


def _difference(walk: _Walk, node: ir.Node) -> Affine | None:
    return _combined(walk, node, symbols.subtract)


def _combined(walk: _Walk, node: ir.Node, operation: Callable[[Element, Element], Element | None]) -> Affine | None:
    a, b = (_widened(walk, value, node) for value in node.inputs)
    if a is None or b is None:
        return None
    return _known(operation(a.start, b.start), [operation(x, y) for x, y in zip(a.steps, b.steps, strict=True)])


def _product(walk: _Walk, node: ir.Node) -> Affine | None:
    """Returns a product with a constant: one operand has no steps."""
    a, b = (_widened(walk, value, node) for value in node.inputs)
    if a is None or b is None:
        return None
    counting, other = (b, a) if any(step != 0 for step in b.steps) else (a, b)
    if any(step != 0 for step in other.steps):
        return None
    steps = [symbols.multiply(step, other.start) for step in counting.steps]
    return _known(symbols.multiply(counting.start, other.start), steps)


def _slice(walk: _Walk, node: ir.Node) -> Affine | None:
    """Returns a Slice with known starts and step 1: the start moves, the steps stay."""
    data = walk.look(node.inputs[0])
    starts = facts.integers(node.inputs[1]) if len(node.inputs) > 2 else None
    axes = facts.integers(node.inputs[3]) if len(node.inputs) > 3 else None
    steps = facts.integers(node.inputs[4]) if len(node.inputs) > 4 else (1,)
    if data is None or starts is None or steps is None or any(step != 1 for step in steps):
        return None
    first: Element | None = data.start
    for axis, start in zip(axes if axes is not None else range(len(starts)), starts, strict=False):
        if not isinstance(axis, int) or not isinstance(start, int) or start < 0 or first is None:
            return None
        skipped = symbols.multiply(data.steps[axis], start)
        first = None if skipped is None else symbols.add(first, skipped)
    return _known(first, data.steps)


def _cumulated(walk: _Walk, node: ir.Node) -> Affine | None:
    """Returns a CumSum of one number everywhere: the running sum grows by that number."""
    data, axis = walk.look(node.inputs[0]), facts.integers(node.inputs[1])
    flags = [node.attributes.get(name) for name in ("exclusive", "reverse")]
    if data is None or axis is None or len(axis) != 1 or not isinstance(axis[0], int) or not data.steps:
        return None
    if any(flag is not None and (flag.is_ref() or flag.as_int()) for flag in flags) or any(s != 0 for s in data.steps):
        return None
    steps: list[Element] = [0] * len(data.steps)
    steps[axis[0]] = data.start
    return Affine(data.start, tuple(steps))


def _filled(walk: _Walk, node: ir.Node) -> Affine | None:
    value, dims = node.attributes.get("value"), facts.dims(node.outputs[0])
    if value is None or value.is_ref() or dims is None:
        return None
    return Affine(int(value.as_tensor().numpy().ravel()[0]), (0,) * len(dims))


def _gathered(walk: _Walk, node: ir.Node) -> Affine | None:
    """Returns a Gather from a tensor with one number everywhere: the indices do not matter."""
    data, dims = walk.look(node.inputs[0]), facts.dims(node.outputs[0])
    if data is None or dims is None or any(step != 0 for step in data.steps):
        return None
    return Affine(data.start, (0,) * len(dims))


def _known(start: Element | None, steps: Sequence[Element | None]) -> Affine | None:
    found = tuple(step for step in steps if step is not None)
    return None if start is None or len(found) < len(steps) else Affine(start, found)


_RULES: dict[str, Callable[[_Walk, ir.Node], Affine | None]] = {
    "Add": _sum,
    "Cast": _same,
    "ConstantOfShape": _filled,
    "CumSum": _cumulated,
    "Expand": _expand,
    "Gather": _gathered,
    "GatherElements": _gathered,
    "GatherND": _gathered,
    "Identity": _same,
    "Mul": _product,
    "Range": _range,
    "Reshape": _view,
    "Slice": _slice,
    "Squeeze": _view,
    "Sub": _difference,
    "Transpose": _transpose,
    "Unsqueeze": _view,
}
