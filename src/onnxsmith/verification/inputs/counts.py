"""Finds the inputs that are counts, and the numbers at which each of them is tried.

A count says how often a Loop runs, or how long a tensor is. Random feeds hold a few counts only, and a graph may
compute differently from the seventh iteration on. So each input that is a count, or one integer that is compared or is
an index, is tried at small numbers, at two larger ones, and around each number with which the graph compares such an
integer or an iteration of a Loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.verification.inputs.input_ranges import Bound, limit_beside_counts, sizes_above
from onnxsmith.verification.inputs.input_readers import Owners, Reader, constant, owners, readers

_OPERANDS = {
    "Loop": (0,), "Range": (0, 1, 2), "Tile": (1,), "ConstantOfShape": (0,), "Expand": (1,), "Slice": (1, 2),
    "TopK": (1,), "OneHot": (1,), "Trilu": (1,), "Pad": (1,), "Split": (1,), "SplitToSequence": (1,), "Resize": (3,),
    "NonMaxSuppression": (2,),
}  # fmt: skip
"""Maps operators to their operands that are counts, lengths or positions."""
_COMPARES = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Min", "Max", "Mod", "Clip"}
_INDEXED = {"Gather", "GatherElements", "GatherND"}
_PASSES = {"Min", "Max", "Mod", "ReduceMin", "ReduceMax", "ReduceSum", "Floor", "Ceil", "Round", "Sum"}
"""Names operators whose result is one of their operands, or near it."""
_USUAL = (-2, -1, 0, 1, 2, 3, 8, 17)
"""Lists the numbers at which each count is tried. A choice: the least numbers, and two above most conditions on the
first iterations. Only a position may be negative."""
_POSITIONS = {"Slice"}
"""Names the operators whose operands count from the end if they are negative."""
SMALL = 3
"""Holds the largest count that fits most sizes."""
_MOST = 4096
"""Limits the numbers around which counts are tried. A choice: a run with as many iterations takes seconds."""
_NUMBERS = 6
"""Limits how many numbers counts are tried around. A choice: each number needs up to three runs."""
_ELEMENTS = 8
"""Limits the elements of an input that holds several counts, and of a constant that is compared with counts."""


@dataclass(frozen=True)
class Count:
    """Describes an input that may be a count: from `least` to `most`, and within the sizes of `below`. If it is not
    `single`, it holds several counts, which are tried at the same number."""

    least: int = 0
    most: int = _MOST + 1
    below: tuple[Bound, ...] = ()
    single: bool = True

    def values(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Returns the numbers at which the input is tried, in ascending order."""
        near = sorted(number for number in numbers if number <= _MOST)[:_NUMBERS] if self.single else []
        wanted = {*_USUAL, *(number + step for number in near for step in (-1, 0, 1))}
        return tuple(sorted(one for one in wanted if self.least <= one <= self.most))

    def fits(self, value: int, sizes: Mapping[str, int]) -> bool:
        """Whether the graph allows the value at these sizes of its dimensions."""
        limits = [most for bound in self.below if (most := bound.most(sizes)) is not None]
        return value <= min(limits, default=value)


def counts(model: ir.Model, inside: Owners | None = None) -> dict[str, Count]:
    """Returns the inputs of a model that may be counts: those that a node reads as counts, and integers of one element
    that are compared or are an index."""
    inside = owners(model) if inside is None else inside
    inputs = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    return {value.name or "": found for value in inputs if (found := _count(value, inside)) is not None}


def numbers(model: ir.Model) -> frozenset[int]:
    """Returns the numbers with which a graph compares integer inputs of one element and the counters of its Loops. For
    a counter, it is the count at which the counter first has this value."""
    inside = owners(model)
    roots = [(value, 0) for value in model.graph.inputs if _elements(value) == 1 and _is_whole(value)]
    for node in walk.all_nodes(model):
        if node.op_type == "Loop" and node.domain in ("", "ai.onnx"):
            roots += [(value, 1) for value in counters(node)]
    return frozenset(
        number
        for root, shift in roots
        for reader in readers(root, inside, _passed)
        for number in _of_reader(reader, shift)
        if number > 0
    )


def _count(value: ir.Value, inside: Owners) -> Count | None:
    elements = _elements(value)
    if elements is None or not 1 <= elements <= _ELEMENTS or value.dtype in (None, ir.DataType.BOOL):
        return None
    read = [(reader.node.op_type, reader.index) for reader in readers(value, inside, _passed)]
    is_count = any(index in _OPERANDS.get(op, ()) for op, index in read)
    if elements > 1 or not _is_whole(value):
        is_number = value.dtype is not None and (value.dtype.is_integer() or value.dtype.is_floating_point())
        return Count(single=elements == 1) if is_count and is_number else None
    if not is_count and not any(op in _COMPARES or (op in _INDEXED and index == 1) for op, index in read):
        return None
    counted = {op for op, index in read if index in _OPERANDS.get(op, ())}
    least, most, below = _USUAL[0] if counted and counted <= _POSITIONS else 0, _MOST + 1, []
    for reader in readers(value, inside):
        limit = limit_beside_counts(reader) if reader.index not in _OPERANDS.get(reader.node.op_type, ()) else None
        if limit is not None:
            least, most = max(least, reader.least(limit[0])), min(most, reader.most(limit[1]))
        below += [Bound(dim, reader.gain, reader.shift + shift * reader.over, reader.over)
                  for dim, shift in sizes_above(reader)]  # fmt: skip
    return Count(least, most, tuple(dict.fromkeys(below)))


def counters(loop: ir.Node) -> list[ir.Value]:
    """Returns the inputs of a Loop's body that may count its iterations."""
    bodies = list(walk.subgraphs(loop))
    first, *others = bodies[0].inputs if bodies and bodies[0].inputs else [None]
    carried = [
        value for value in others[1:] if value is not None and _is_whole(value) and _elements(value) in (1, None)
    ]
    return [*([first] if first is not None else []), *carried]


def _passed(node: ir.Node, index: int) -> list[ir.Value]:
    return list(node.outputs[:1]) if node.op_type in _PASSES else []


def _of_reader(reader: Reader, shift: int) -> Iterator[int]:
    """Yields the counts at which the reader's node may begin to compute differently."""
    node, op = reader.node, reader.node.op_type
    found: list[float] = []
    if op in _COMPARES:
        held = [constant(value) for place, value in enumerate(node.inputs) if place != reader.index]
        found = [float(one) for ones in held if ones is not None and ones.size <= _ELEMENTS for one in ones]
    elif op in _INDEXED - {"GatherND"} and reader.index == 1:
        axis = node.attributes.get("axis")
        found = _length(node.inputs[0], axis.as_int() if axis is not None else 0)
    elif op == "Slice" and reader.index in (1, 2):
        shape = node.inputs[0].shape if node.inputs[0] is not None else None
        found = [float(size) for size in shape or () if isinstance(size, int)]
    for number in found:
        if math.isfinite(number):
            yield int((number * reader.over - reader.shift) // reader.gain) + shift


def _length(value: ir.Value | None, axis: int) -> list[float]:
    shape = value.shape if value is not None else None
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    return [float(size)] if isinstance(size, int) else []


def _is_whole(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_integer()


def _elements(value: ir.Value) -> int | None:
    """Returns the number of elements; None if it is unknown."""
    if value.shape is None or not all(isinstance(size, int) for size in value.shape):
        return None
    return math.prod(size for size in value.shape if isinstance(size, int))
