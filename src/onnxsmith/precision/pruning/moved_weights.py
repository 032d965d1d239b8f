"""Computes weights that only move the elements of other stored tensors, and remembers where each element came from.

Exporters write the weights of recurrent layers as Concat, Split and Unsqueeze of the parameters, and biases as Reshape
of a vector. Channels are followed only through stored weights, so these nodes are computed once. The remembered places
lead back from a weight to the parameters of the torch module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Indices, is_weight
from onnxsmith.precision.pruning.operators.base import integer, operand

Array = npt.NDArray[Any]
Move = Callable[[Sequence[Array]], Sequence[Array]]


@dataclass(frozen=True)
class _Step:
    """Makes a tensor: the result number `place` of `move`, applied to the tensors `operands`."""

    move: Move
    operands: tuple[str, ...]
    place: int


@dataclass
class Moved:
    """Stored tensors that were made from others by moving elements."""

    steps: dict[str, _Step] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The shapes of all moved tensors, by name."""

    @property
    def results(self) -> list[str]:
        """Returns the made tensors from which no other tensor was made."""
        parts = {one for step in self.steps.values() for one in step.operands}
        return [name for name in self.steps if name not in parts]

    def made(self, name: str, of: Callable[[str], Array]) -> Array:
        """Computes the tensor `name` from the values that `of` returns for its stored source tensors."""
        step = self.steps.get(name)
        return of(name) if step is None else step.move([self.made(one, of) for one in step.operands])[step.place]

    def sources(self, name: str) -> list[str]:
        """Returns the stored tensors from which a tensor was made; the tensor itself if it was not made."""
        step = self.steps.get(name)
        if step is None:
            return [name]
        return list(dict.fromkeys(source for one in step.operands for source in self.sources(one)))

    def elements(self, name: str) -> tuple[list[str], Array, Array]:
        """Returns the sources of a tensor and, for each of its elements, the index of the source and the flat index in
        the source."""
        names = self.sources(name)
        sizes = [int(np.prod(self.shapes[source], dtype=np.int64)) for source in names]
        ends = np.cumsum(sizes)
        begins = dict(zip(names, ends - sizes, strict=True))
        flat = self.made(
            name, lambda source: begins[source] + np.arange(np.prod(self.shapes[source])).reshape(self.shapes[source])
        ).astype(np.int64)
        which = np.searchsorted(ends, flat, side="right")
        return names, which, flat - (ends - sizes)[which]


def moved(model: ir.Model) -> Moved:
    """Computes, in place, the float tensors of the main graph that only move elements of stored tensors. Leaves out
    stored tensors with other readers, because a second copy would make the file larger."""
    found, graph, outputs = Moved(), model.graph, set(model.graph.outputs)
    alike: dict[tuple[object, ...], Sequence[ir.Value]] = {}
    for node in list(graph):
        move = None if node.domain or set(node.outputs) & outputs else _move(node)
        data = _data(node)
        if move is None or not all(_is_free(value) for value in data):
            continue
        key = (node.op_type, repr(sorted((name, str(one.value)) for name, one in node.attributes.items())),
               *(None if value is None else value.name for value in node.inputs))  # fmt: skip
        results = alike.get(key) or _stored(graph, node, move, data, found)
        alike[key] = results
        for value, result in zip(list(node.outputs), results, strict=True):
            for use in list(value.uses()):
                use.node.replace_input_with(use.idx, result)
        graph.remove(node, safe=True)
    for name in {one for step in found.steps.values() for one in step.operands} | set(found.steps):
        stored = graph.initializers.get(name)
        if stored is not None and not stored.uses() and stored not in outputs:
            del graph.initializers[name]
    return found


def _stored(graph: ir.Graph, node: ir.Node, move: Move, data: Sequence[ir.Value], found: Moved) -> Sequence[ir.Value]:
    """Turns the results of a node into initializers of the same names, and returns these."""
    tensors = [value.const_value for value in data]
    arrays = move([tensor.numpy() for tensor in tensors if tensor is not None])
    names = tuple(value.name or "" for value in data)
    for name, tensor in zip(names, tensors, strict=True):
        found.shapes[name] = () if tensor is None else tuple(tensor.shape.numpy())
    made = []
    for place, (value, array) in enumerate(zip(node.outputs, arrays, strict=True)):
        assert tensors[0] is not None
        name = value.name or ""
        tensor = ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), tensors[0].dtype, name=name)
        result = ir.Value(name=name, const_value=tensor, shape=ir.Shape(array.shape),
                          type=ir.TensorType(tensor.dtype))  # fmt: skip
        value.name = None
        graph.initializers[name] = result
        found.steps[name] = _Step(move, names, place)
        found.shapes[name] = tuple(array.shape)
        made.append(result)
    return made


_FLOATS = {ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE}
_MOVING = {"Concat", "Flatten", "Gather", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}


def _data(node: ir.Node) -> list[ir.Value]:
    """Returns the operands whose elements are moved."""
    count = len(node.inputs) if node.op_type == "Concat" else 1
    return [value for value in node.inputs[:count] if value is not None]


def _is_free(value: ir.Value) -> bool:
    """Whether a float tensor is stored and all its readers only move elements."""
    if not is_weight(value) or value.const_value is None or value.const_value.dtype not in _FLOATS:
        return False
    return not value.is_graph_output() and all(
        use.node.op_type in _MOVING and not use.node.domain and use.node.graph is value.graph for use in value.uses()
    )


def _move(node: ir.Node) -> Move | None:
    """Returns the node's function on arrays; None if it does more than move elements, or depends on computed
    operands."""
    make = _MOVES.get(node.op_type)
    count = 0 if node.op_type == "Concat" else 1
    if (
        make is None
        or not node.inputs
        or (count and any(one is not None and not is_weight(one) for one in node.inputs))
    ):
        return None
    return make(node)


def _numbers(node: ir.Node, index: int, name: str) -> list[int] | None:
    """Returns the integers of an operand, or of the attribute in older opsets."""
    if name in node.attributes:
        return [int(one) for one in node.attributes[name].as_ints()]
    array = facts.constant(operand(node, index))
    return None if array is None else [int(one) for one in array.ravel()]


def _concat(node: ir.Node) -> Move | None:
    axis = integer(node, "axis", 0)
    return lambda given: [np.concatenate(given, axis)]


def _flatten(node: ir.Node) -> Move | None:
    axis = integer(node, "axis", 1)
    return lambda given: [given[0].reshape(int(np.prod(given[0].shape[:axis])), -1)]


def _gather(node: ir.Node) -> Move | None:
    axis, taken = integer(node, "axis", 0), facts.constant(operand(node, 1))
    return None if taken is None else lambda given: [np.take(given[0], taken.astype(np.int64), axis)]


def _reshape(node: ir.Node) -> Move | None:
    sizes = _numbers(node, 1, "shape")
    if sizes is None or (0 in sizes and integer(node, "allowzero", 0)):
        return None
    known = sizes
    return lambda given: [
        given[0].reshape([given[0].shape[at] if size == 0 else size for at, size in enumerate(known)])
    ]


def _slice(node: ir.Node) -> Move | None:
    begins, ends = _numbers(node, 1, "starts"), _numbers(node, 2, "ends")
    if begins is None or ends is None:
        return None
    axes = _numbers(node, 3, "axes") or list(range(len(begins)))
    steps = _numbers(node, 4, "steps") or [1] * len(begins)
    if any(step < 0 for step in steps):  # in Slice the end -1 means another position than in Python
        return None
    parts = list(zip(axes, begins, ends, steps, strict=True))

    def move(given: Sequence[Array]) -> Sequence[Array]:
        at = [slice(None)] * given[0].ndim
        for axis, begin, end, step in parts:
            at[axis] = slice(begin, end, step)
        return [given[0][tuple(at)]]

    return move


def _split(node: ir.Node) -> Move | None:
    axis, count, sizes = integer(node, "axis", 0), len(node.outputs), _numbers(node, 1, "split")

    def move(given: Sequence[Array]) -> Sequence[Array]:
        each = -(-given[0].shape[axis] // count)
        ends: Indices = np.cumsum([each] * count if sizes is None else sizes)[:-1]
        return np.split(given[0], ends.tolist(), axis)

    return move


def _squeeze(node: ir.Node) -> Move | None:
    axes = _numbers(node, 1, "axes")
    return lambda given: [np.squeeze(given[0], None if axes is None else tuple(axes))]


def _transpose(node: ir.Node) -> Move | None:
    order = [int(axis) for axis in node.attributes["perm"].as_ints()] if "perm" in node.attributes else None
    return lambda given: [np.transpose(given[0], order)]


def _unsqueeze(node: ir.Node) -> Move | None:
    axes = _numbers(node, 1, "axes")
    return None if axes is None else lambda given: [np.expand_dims(given[0], tuple(axes))]


_MOVES: dict[str, Callable[[ir.Node], Move | None]] = {
    "Concat": _concat, "Flatten": _flatten, "Gather": _gather, "Reshape": _reshape, "Slice": _slice, "Split": _split,
    "Squeeze": _squeeze, "Transpose": _transpose, "Unsqueeze": _unsqueeze,
}  # fmt: skip
