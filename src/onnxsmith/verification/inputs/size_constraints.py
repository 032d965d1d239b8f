"""Finds the numbers in a graph that limit sizes: windows, lengths of tables, thresholds.

A graph may compute differently beyond a number with which it compares a size, or fail beyond the length of a table that
it indexes. So every symbol is tried beyond these numbers. The search is one walk, linear in the number of nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.structure import walk
from onnxsmith.verification.inputs import counts
from onnxsmith.verification.inputs.input_readers import constant

_FROM_SHAPES = {"Shape", "Size", "Range", "ConstantOfShape", "Trilu", "NonZero"}
_COMPARES = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Min", "Max", "Mod", "Clip", "Trilu"}
_LOOPS = {"Loop", "Scan"}
_BROADCASTS = {"Add", "Sub", "Mul", "Div", "Where", "Pow", "PRelu", "And", "Or"}
_BY_CHANNEL = {
    "Conv": (1, 1), "ConvTranspose": (1, 0), "BatchNormalization": (1, 0), "InstanceNormalization": (1, 0),
    "GroupNormalization": (1, 0), "LayerNormalization": (-1, -1), "MatMul": (-1, -2), "MatMulInteger": (-1, -2),
    "LSTM": (-1, -1), "GRU": (-1, -1), "RNN": (-1, -1),
}  # fmt: skip
"""Maps operators with weights to two axes that have to agree: an axis of the first input and an axis of the weights."""
_MOST_ELEMENTS = 8
"""Limits the elements of a constant that may limit a size. A choice: larger constants are weights."""
_LEAST, _MOST = 2, 1 << 20
"""Bounds the numbers that may limit a size. A choice: no input has a longer axis."""
_FIRST_LOST = {
    "FLOAT16": 2**11 + 1, "BFLOAT16": 2**8 + 1, "FLOAT8E4M3FN": 2**4 + 1, "FLOAT8E5M2": 2**3 + 1,
    "INT8": 2**7, "UINT8": 2**8, "INT16": 2**15, "UINT16": 2**16,
}  # fmt: skip
"""Maps a dtype to the first integer that it cannot represent. From this integer on, sizes and positions are rounded or
wrap around."""

Dims = tuple[int | str | None, ...]


@dataclass(frozen=True)
class Numbers:
    """Holds the numbers in a graph that limit sizes.

    `of_dims` are numbers by the text of the dimension that they limit; `free` are numbers without a known dimension.
    `tensors` counts the tensors of each shape with a symbol, and the loops around them, for the cost of a run.
    `counted` are numbers with which the graph compares integer inputs of one element and iterations of Loops. If
    `loops` is True, a size is the count of such iterations.
    """

    of_dims: Mapping[str, frozenset[int]] = field(default_factory=dict)
    free: frozenset[int] = frozenset()
    tensors: Mapping[tuple[Dims, int], int] = field(default_factory=dict)
    counted: frozenset[int] = frozenset()
    loops: bool = False

    @property
    def of_any(self) -> frozenset[int]:
        """Returns the numbers that may limit any dimension."""
        iterations = (number for number in self.counted if self.loops and _LEAST <= number <= _MOST)
        return self.free.union(iterations)

    def of(self, symbols: Iterable[str]) -> frozenset[int]:
        """Returns the numbers that limit a dimension with any of these names in shape inference."""
        wanted = set(symbols)
        found = [held for dim, held in self.of_dims.items() if dim in wanted or wanted & set(dims.names_in(dim))]
        return frozenset().union(*found)

    def with_those_of(self, other: Numbers) -> Numbers:
        """Adds the numbers of another graph with the same inputs; `tensors` stays unchanged."""
        more = self.with_more(other.of_dims).with_counted(other.counted)
        return replace(more, free=self.free | other.free, loops=self.loops or other.loops)

    def with_counted(self, more: frozenset[int]) -> Numbers:
        """Adds numbers with which another graph compares counts."""
        return replace(self, counted=self.counted | more)

    def with_more(self, more: Mapping[str, frozenset[int]]) -> Numbers:
        """Adds numbers by the text of the dimension that they limit."""
        joined = {dim: self.of_dims.get(dim, frozenset()) | held for dim, held in more.items()}
        return replace(self, of_dims={**self.of_dims, **joined})

    def elements(self, sizes: Mapping[str, int]) -> int:
        """Returns the number of elements that are computed at these sizes, as far as the shapes are known. A choice: an
        inner loop is assumed to run as many iterations as the largest size, an outer loop one iteration."""
        total, turns = 0, max(sizes.values(), default=1)
        for (shape, loops), count in self.tensors.items():
            found = [dims.evaluate(dim, sizes) for dim in shape]
            total += count * turns ** max(loops - 1, 0) * math.prod(size for size in found if size is not None)
        return total


def numbers(model: ir.Model) -> Numbers:
    """Finds the numbers in a graph whose shapes were inferred."""
    of_dims: dict[str, set[int]] = {}
    free: set[int] = set()
    tensors: Counter[tuple[Dims, int]] = Counter()
    from_shapes: set[ir.Value] = set()
    loops: dict[ir.Graph | ir.Function | None, int] = {}
    is_counted = False
    for node in walk.all_nodes(model):
        around = loops.get(node.graph, 0)
        for body in walk.subgraphs(node) if walk.has_subgraphs(node) else ():
            loops[body] = around + (node.op_type in _LOOPS)  # the body of an If runs once
        if node.op_type in _FROM_SHAPES or any(value in from_shapes for value in node.inputs):
            from_shapes.update(output for output in node.outputs if _is_small_kind(output))
        is_counted |= node.op_type == "Loop" and any(value in from_shapes for value in node.inputs[:2])
        for dim, number in _of_node(node, from_shapes):
            if _LEAST <= number <= _MOST:
                (of_dims.setdefault(dim, set()) if dim else free).add(number)
        for output in node.outputs:
            shape = _dims(output)
            if any(not isinstance(dim, int) for dim in shape):
                tensors[shape, around] += 1
    found = {dim: frozenset(held) for dim, held in of_dims.items()}
    return Numbers(found, frozenset(free), dict(tensors), counts.numbers(model), is_counted)


def _is_small_kind(value: ir.Value) -> bool:
    """Whether the value is an integer or bool computed from shapes, so that it may be a size, a position or a mask."""
    return value.dtype is None or value.dtype.is_integer() or value.dtype == ir.DataType.BOOL


def _of_node(node: ir.Node, from_shapes: set[ir.Value]) -> Iterator[tuple[str, int]]:
    """Yields pairs of a dimension and a number that limits it; "" for an unknown dimension."""
    op = node.op_type
    if op == "Slice":
        yield from _of_slice(node, from_shapes)
    elif op in ("Gather", "GatherElements", "GatherND") and _is_held(node.inputs[0]) and node.inputs[1] in from_shapes:
        axis = node.attributes.get("axis")
        yield "", _length(node.inputs[0], axis.as_int() if axis is not None else 0)
    elif op in _COMPARES and any(value in from_shapes for value in node.inputs):
        yield from (("", number) for value in node.inputs if value is not None for number in _whole_numbers(value))
    elif op == "Cast" and node.inputs[0] in from_shapes:
        yield "", _FIRST_LOST.get(ir.DataType(node.attributes["to"].as_int()).name, 0)
    if op in _BROADCASTS:
        yield from _of_broadcast(node)
    if op in _BY_CHANNEL:
        yield from _of_weights(node)


def _of_slice(node: ir.Node, from_shapes: set[ir.Value]) -> Iterator[tuple[str, int]]:
    """Yields constant starts and ends along a symbolic axis, and the length of a table with a computed slice."""
    if len(node.inputs) < 3:
        yield from _of_slice_by_attributes(node)
        return
    data, starts, ends = node.inputs[0], node.inputs[1], node.inputs[2]
    shape = _dims(data)
    given = constant(node.inputs[3]) if len(node.inputs) > 3 and node.inputs[3] is not None else None
    rank = len(shape)
    for place, axis in enumerate(range(rank) if given is None else [int(number) for number in given]):
        if not -rank <= axis < rank:
            continue
        dim = shape[axis]
        for operand in (starts, ends):
            numbers_ = constant(operand)
            # Either constant bounds cut an axis of unknown size, or computed bounds cut a table of known length.
            if numbers_ is not None and place < numbers_.size and not isinstance(dim, int):
                yield dim or "", abs(int(numbers_[place]))
            elif numbers_ is None and operand in from_shapes and _is_held(data) and isinstance(dim, int):
                yield "", dim


def _of_slice_by_attributes(node: ir.Node) -> Iterator[tuple[str, int]]:
    """Yields the same as `_of_slice` before opset 10, where starts and ends are attributes."""
    shape = _dims(node.inputs[0])
    starts, ends = node.attributes["starts"].as_ints(), node.attributes["ends"].as_ints()
    axes = node.attributes["axes"].as_ints() if "axes" in node.attributes else range(len(starts))
    for axis, start, end in zip(axes, starts, ends, strict=False):
        dim = shape[axis] if -len(shape) <= axis < len(shape) else 0
        if not isinstance(dim, int):
            yield from ((dim or "", abs(number)) for number in (start, end))


def _of_broadcast(node: ir.Node) -> Iterator[tuple[str, int]]:
    """Yields the length of a constant along an axis that is dynamic in the other operand: only 1 and that length
    fit."""
    held = [value for value in node.inputs if value is not None and _is_held(value)]
    for value in node.inputs if held else ():
        if value is None or value in held:
            continue
        for other in held:
            for dim, length in zip(reversed(_dims(value)), reversed(_dims(other)), strict=False):
                if isinstance(dim, str) and isinstance(length, int) and length > 1:
                    yield dim, length


def _of_weights(node: ir.Node) -> Iterator[tuple[str, int]]:
    """Yields the number of channels that a node's weights require of the node's first input."""
    data, weights = _dims(node.inputs[0]), _dims(node.inputs[1])
    data_axis, axis = _BY_CHANNEL[node.op_type]
    if (
        not _is_held(node.inputs[1])
        or not -len(data) <= data_axis < len(data)
        or not -len(weights) <= axis < len(weights)
    ):
        return
    group = node.attributes.get("group") if node.op_type == "Conv" else None
    dim, length = data[data_axis], weights[axis]
    if isinstance(dim, str) and isinstance(length, int):
        yield dim, length * (group.as_int() if group is not None else 1)


def _is_held(value: ir.Value | None) -> bool:
    """Whether the value is in the file: an initializer or a Constant."""
    return value is not None and const_tensor(value) is not None


def _length(value: ir.Value | None, axis: int) -> int:
    shape = _dims(value)
    dim = shape[axis] if -len(shape) <= axis < len(shape) else 0
    return dim if isinstance(dim, int) else 0


def _whole_numbers(value: ir.Value) -> list[int]:
    tensor = const_tensor(value)
    if tensor is None or tensor.size > _MOST_ELEMENTS:
        return []
    found = constant(value)
    small = [] if found is None else [abs(float(number)) for number in found]
    return [int(number) for number in small if number.is_integer() and number <= _MOST]


def _dims(value: ir.Value | None) -> Dims:
    if value is None or value.shape is None:
        return ()
    return written(value.shape)
