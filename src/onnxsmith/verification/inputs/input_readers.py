"""Follows an input to the nodes that read it, through nodes that keep its values, also into branches and bodies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure import walk

_KEEPS_VALUES = {
    "Identity", "Cast", "CastLike", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Concat",
    "Expand", "Tile", "Gather", "GatherElements", "GatherND", "Split", "Clip", "Abs", "Compress", "Pad", "Trilu",
    "ReverseSequence", "ArrayFeatureExtractor",
}  # fmt: skip
_ANY_OPERAND = {"Concat", "Where"}
_FAR = 4096
"""Limits the values that are followed, and the elements of a constant that are read. A choice: it bounds the search."""

Owners = Mapping[ir.Graph, ir.Node]
Through = Callable[[ir.Node, int], list[ir.Value]]
"""Returns the outputs of a node that keep some values of its operand."""


@dataclass(frozen=True)
class Reader:
    """Names operand `index` of `node`, whose value is `(gain * x + shift) // over` for the input x. An unknown addend
    counts as 0."""

    node: ir.Node
    index: int
    gain: int = 1
    shift: int = 0
    over: int = 1

    def least(self, low: int) -> int:
        """Returns the smallest x for which the operand is not below `low`."""
        return -((self.shift - low * self.over) // self.gain)

    def most(self, high: int) -> int:
        """Returns the largest x for which the operand is not above `high`."""
        return (high * self.over + self.over - 1 - self.shift) // self.gain


def owners(model: ir.Model) -> Owners:
    """Returns the node to which each branch and body belongs."""
    return {inner: node for node in walk.all_nodes(model) for inner in walk.subgraphs(node)}


def readers(value: ir.Value, inside: Owners | None = None, through: Through | None = None) -> Iterator[Reader]:
    """Yields every node that reads the value, or a value with the same numbers. The nearest node comes first. `through`
    adds nodes that pass the numbers on."""
    seen: set[int] = set()
    queue = deque([(value, 1, 0, 1)])
    while queue and len(seen) < _FAR:
        at, gain, shift, over = queue.popleft()
        if id(at) in seen:
            continue
        seen.add(id(at))
        for node, index in at.uses():
            yield Reader(node, index, gain, shift, over)
            divisor = _divisor(node, index)
            if divisor is not None:
                queue.append((node.outputs[0], gain, shift, over * divisor))
            queue += [(out, gain * by, shift * by + step * over, over) for out, by, step in _onward(node, index)]
            queue += [(out, gain, shift, over) for out in (through(node, index) if through is not None else ())]
        queue += [(out, gain, shift, over) for out in _given_out(at, inside or {})]


def constant(value: ir.Value | None) -> npt.NDArray[np.float64] | None:
    """Returns the elements of a small constant as a flat array; None for any other value."""
    tensor = const_tensor(value) if value is not None else None
    if tensor is None or tensor.size > _FAR or tensor.dtype == ir.DataType.STRING:
        return None
    return np.asarray(tensor.numpy()).astype(np.float64).ravel()


def whole(value: ir.Value | None) -> int | None:
    """Returns the whole number that a scalar constant holds; None if the constant holds no whole number."""
    found = constant(value)
    if found is None or found.size != 1 or not float(found[0]).is_integer():
        return None
    return int(found[0])


def _onward(node: ir.Node, index: int) -> list[tuple[ir.Value, int, int]]:
    """Returns the outputs that keep the operand's values, each with its factor and addend."""
    op = node.op_type
    if op in ("Add", "Sub", "Mul") and len(node.inputs) == 2:
        return _computed(node, index)
    if op in ("Loop", "Scan", "If"):
        return [(inner, 1, 0) for inner in _entered(node, index)]
    if op == "Where":
        return [(node.outputs[0], 1, 0)] if index > 0 else []
    if op not in _KEEPS_VALUES or (op not in _ANY_OPERAND and index > 0):
        return []
    return [(output, 1, 0) for output in node.outputs]


def _divisor(node: ir.Node, index: int) -> int | None:
    """Returns the whole number by which a Div divides integers, for example to turn a count of samples into a count of
    frames."""
    held, number = node.inputs[index], whole(node.inputs[1]) if node.op_type == "Div" and index == 0 else None
    is_whole = held is not None and held.dtype is not None and held.dtype.is_integer()
    return number if number is not None and number > 0 and is_whole else None


def _computed(node: ir.Node, index: int) -> list[tuple[ir.Value, int, int]]:
    other = node.inputs[1 - index]
    number, out = whole(other), node.outputs[0]
    if node.op_type == "Mul":
        return [(out, number, 0)] if number is not None and number > 0 else []
    if node.op_type == "Sub" and index == 1:
        return []
    if number is None:
        # The offset comes from another input or an earlier node: an index plus an offset is still an index.
        held = node.inputs[index]
        is_whole = held is not None and held.dtype is not None and held.dtype.is_integer()
        return [(out, 1, 0)] if constant(other) is None and other is not held and is_whole else []
    return [(out, 1, number if node.op_type == "Add" else -number)]


def _entered(node: ir.Node, index: int) -> list[ir.Value]:
    """Returns the operand's value inside a body."""
    bodies = [] if node.op_type == "If" else list(walk.subgraphs(node))
    first = 2 if node.op_type == "Loop" else 0
    return [body.inputs[index] for body in bodies if first <= index < len(body.inputs)]


def _given_out(value: ir.Value, inside: Owners) -> list[ir.Value]:
    """Returns the value outside a body, if the body returns it."""
    graph = value.graph
    node = inside.get(graph) if isinstance(graph, ir.Graph) and value.is_graph_output() else None
    if node is None or not isinstance(graph, ir.Graph):
        return []
    first = 1 if node.op_type == "Loop" else 0
    places = [number - first for number, output in enumerate(graph.outputs) if output is value]
    return [node.outputs[place] for place in places if 0 <= place < len(node.outputs)]
