"""Finds the values that an input may take, from the nodes that read it.

Random integers are out of range as indices of a Gather, and zeros everywhere test nothing. So the search follows an
input through nodes that keep its values, to nodes that limit the values. The size of the indexed tensor limits an
index, a constant limits the values that are compared with it, and a Cast to bool limits a mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.signature import Dim
from onnxsmith.verification.inputs.input_readers import Owners, Reader, constant, readers, whole

_SHAPE_OPERANDS = {
    "Reshape": (1,), "Expand": (1,), "ConstantOfShape": (0,), "Tile": (1,), "Range": (0, 1, 2), "Resize": (3,),
    "OneHot": (1,), "Pad": (1,), "Slice": (1, 2, 4), "AffineGrid": (1,),
}  # fmt: skip
_INDEX_OPERANDS = {"Gather": 1, "GatherElements": 1, "ScatterElements": 1, "Scatter": 1, "TensorScatter": 2}
_COMPARES = {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"}
_RECURRENT = {"LSTM", "GRU", "RNN"}
_SMALL = 4
"""Limits integers if the graph sets no limit. A choice: most graphs accept small counts and indices."""
_LOWEST, _HIGHEST = -(2**31), 2**31
"""Holds the limits of 32-bit integers, beyond which no bound is searched."""


@dataclass(frozen=True)
class Bound:
    """Bounds x from above: (gain * x + shift) // over < size, where size is the text of a dimension."""

    dim: str
    gain: int = 1
    shift: int = 0
    over: int = 1

    def most(self, sizes: Mapping[str, int]) -> int | None:
        """Returns the largest x; None if the size is unknown."""
        size = dims.evaluate(self.dim, sizes)
        return None if size is None else (size * self.over - 1 - self.shift) // self.gain


@dataclass(frozen=True)
class Allowed:
    """Describes the allowed integers: from `low` to `high`, both included, or one of `choices` if there are any. `why`
    names the node that sets the limit.

    `below` limits the integers further by sizes of the feed. If `certain` is False, the limits are a guess, which a
    runtime's refusal may narrow.
    """

    low: int
    high: int
    choices: tuple[int, ...] = ()
    why: str = "nothing in the graph limits it"
    below: tuple[Bound, ...] = ()
    marks: tuple[int, ...] = ()
    """Lists the numbers inside the range with which the graph compares the input: padding, an end token."""
    beside: tuple[int, ...] = ()
    """Lists the neighbours of the choices, for inputs of several numbers. The neighbours show a limit that is wrong by
    one."""

    @property
    def certain(self) -> bool:
        """Whether the graph itself limits the values."""
        return self.why != Allowed.why

    def within(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Returns the lowest and highest value at these sizes of the graph's dimensions. Both values are 0 if the
        indexed tensor is empty."""
        known = [most for bound in self.below if (most := bound.most(sizes)) is not None]
        high = min([self.high, *known])
        if not known and high >= _HIGHEST:
            return self.low, max(self.low, _SMALL)  # the size is computed at run time: small values are likely valid
        return min(self.low, max(high, 0)), max(high, 0) if self.low >= 0 else high


@dataclass
class _Limits:
    """Holds the limits found so far."""

    low: int = _LOWEST
    high: int = _HIGHEST
    why: str = ""

    def narrow(self, low: int, high: int, node: ir.Node) -> None:
        if low > self.low or high < self.high:
            self.why = _label(node)
        self.low, self.high = max(low, self.low), min(high, self.high)


def allowed(value: ir.Value, inside: Owners | None = None) -> Allowed:
    """Returns the values that an integer input may take."""
    limits, guesses = _Limits(), _Limits()
    choices: list[int] = []
    below: dict[Bound, None] = {}
    for reader in readers(value, inside):
        node = reader.node
        for found, into in ((_limit(reader), limits), (_guess(reader), guesses)):
            if found is not None:
                low, high = found
                into.narrow(reader.least(low), reader.most(high), node)
        for dim, shift in sizes_above(reader):
            below.setdefault(Bound(dim, reader.gain, reader.shift + shift * reader.over, reader.over))
            limits.why = limits.why or _label(node)
        constants = (
            [number - reader.shift for number in _compared_with(node, reader.index)]
            if reader.gain == reader.over == 1
            else []
        )
        choices += constants
        if constants and not limits.why:
            limits.why = _label(node)
    if limits.low == _LOWEST and limits.high == _HIGHEST and not below:
        beside = _size_beside(value) if guesses.why else ""
        most = guesses.high if not beside else _HIGHEST
        limits.low, limits.high, limits.why = guesses.low, most, limits.why or guesses.why
        below |= {Bound(beside, shift=-1): None} if beside else {}
    least, most = _bounds(value.dtype)
    if limits.low > _LOWEST or limits.high < _HIGHEST:
        limits.low, limits.high = max(limits.low, least), min(limits.high, most)
    inside_dtype = [choice for choice in choices if least <= choice <= most]
    settled = _settle(limits, inside_dtype, tuple(below), value.dtype)
    if settled.choices and _holds_several(value) and limits.low > _LOWEST and (limits.high < _HIGHEST or below):
        others = _settle(limits, [], tuple(below), value.dtype)
        return replace(
            others, marks=tuple(choice for choice in dict.fromkeys(inside_dtype) if choice in settled.choices)
        )
    return settled


def _holds_several(value: ir.Value) -> bool:
    """Whether the input holds several numbers, so that some may be marks and others not."""
    return _rank(value) > 0 and any(size != 1 for size in value.shape or ())


def indexing(value: ir.Value, inside: Owners | None = None) -> Allowed | None:
    """Returns the values of a float input that a Cast turns into an index; None for other floats."""
    if not any(_INDEX_OPERANDS.get(reader.node.op_type) == reader.index for reader in readers(value, inside)):
        return None
    return replace(allowed(value, inside), choices=())


def branches(value: ir.Value, inside: Owners | None = None) -> tuple[int, ...]:
    """Returns both values of a bool that an If reads as its condition; empty for other bools."""
    asked = any(reader.node.op_type == "If" and reader.index == 0 for reader in readers(value, inside))
    return (1, 0) if asked else ()


def _label(node: ir.Node) -> str:
    return f"{node.op_type} {node.name or ''}".strip()


def _bounds(dtype: ir.DataType | None) -> tuple[int, int]:
    """Returns the lowest and highest value of the dtype, within 32 bits."""
    if dtype is None or not dtype.is_integer():
        return _LOWEST, _HIGHEST
    bits = dtype.bitwidth
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed() else (0, 2**bits - 1)
    return max(low, _LOWEST), min(high, _HIGHEST)


def _settle(limits: _Limits, choices: list[int], below: tuple[Bound, ...], dtype: ir.DataType | None) -> Allowed:
    low, high, why = limits.low, limits.high, limits.why
    inside = [choice for choice in dict.fromkeys(choices) if low <= choice <= high]
    if inside:
        # A value beside the choices takes the branch on which no comparison holds.
        others = [inside[-1] + 1, inside[0] - 1]
        inside += [other for other in others if low <= other <= high and other not in inside][:1]
        near = (choice + step for choice in inside for step in (-1, 1))
        beside = tuple(dict.fromkeys(one for one in near if low <= one <= high and one not in inside))
        return Allowed(min(inside), max(inside), tuple(inside), why, beside=beside)
    if below and low <= high:
        return Allowed(max(low, 0), high, (), why, below)
    if low > high or (low == _LOWEST and high == _HIGHEST):  # limits that exclude each other say nothing either
        return Allowed(0, _unlimited(dtype))
    return Allowed(max(low, 0) if high >= 0 else low, high, (), why)


def _unlimited(dtype: ir.DataType | None) -> int:
    """Returns the highest value if the graph sets no limit. For 8 bits this is the full range, because they mostly hold
    pixels or quantised values; for wider dtypes it is a small number."""
    return _bounds(dtype)[1] if dtype in (ir.DataType.UINT8, ir.DataType.INT8) else _SMALL


def _limit(reader: Reader) -> tuple[int, int] | None:
    """Returns the range of the operand, if a number at the operator limits the operand."""
    node, index = reader.node, reader.index
    op = node.op_type
    if _INDEX_OPERANDS.get(op) == index:
        size = _size(node.inputs[0], _int(node, "axis", 0))
        return (0, size - 1) if isinstance(size, int) else (0, _HIGHEST) if size else None
    if op in ("GatherND", "ScatterND") and index == 1:
        known = [size for size in _indexed(node) if isinstance(size, int)]
        return (0, min(known) - 1) if known else (0, _HIGHEST) if _indexed(node) else None
    if op == "OneHot" and index == 0:
        depth = constant(node.inputs[1])
        return (0, int(depth[0]) - 1) if depth is not None and depth.size == 1 else None
    if op == "Cast" and _int(node, "to", 0) == ir.DataType.BOOL.value:
        return (0, 1)
    if op == "Sub" and index == 1 and whole(node.inputs[0]) == 1:  # `1 - mask`
        return (0, 1)
    if op in ("Div", "Mod") and index == 1:  # a divisor must not be 0
        return (1, _SMALL)
    if op == "Loop" and index == 0:
        return (1, _SMALL)
    return _counted(reader)


def _counted(reader: Reader) -> tuple[int, int] | None:
    """Returns the range of an operand that is a count, a length, a label or a size."""
    node, index = reader.node, reader.index
    op = node.op_type
    if op in ("TopK", "ReverseSequence") and index == 1:
        return (1, _HIGHEST)
    if op in _RECURRENT and index == 4:
        return (1, _HIGHEST)
    if op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss") and index == 1:
        size = _size(node.inputs[0], 1)
        return (0, size - 1 if isinstance(size, int) else _HIGHEST)
    if (op in ("RoiAlign", "CropAndResize") and index == 2) or (op == "ScatterElements" and index == 1):
        return (0, _HIGHEST)
    if op in ("SequenceAt", "SequenceErase") and index == 1:
        return (0, 1)
    if op == "DFT" and index == 2:
        rank = _rank(node.inputs[0])
        return (min(1, rank - 2), rank - 2) if rank > 1 else None
    if op == "CumSum" and index == 1:
        rank = _rank(node.inputs[0])
        return (0, rank - 1) if rank else None
    return (1, _SMALL) if index in _SHAPE_OPERANDS.get(op, ()) else None


def limit_beside_counts(reader: Reader) -> tuple[int, int] | None:
    """Returns the range of an operand that is no count. A divisor has a lower limit only."""
    op, index = reader.node.op_type, reader.index
    if op == "Loop" or index in _SHAPE_OPERANDS.get(op, ()):
        return None
    return (1, _HIGHEST) if op in ("Div", "Mod") and index == 1 else _limit(reader)


def sizes_above(reader: Reader) -> Iterable[tuple[str, int]]:
    """Yields dimensions that the operand plus a number has to stay below, with this number."""
    node, index = reader.node, reader.index
    op = node.op_type
    above: list[tuple[Dim, int]] = []
    if _INDEX_OPERANDS.get(op) == index:
        above = [(_size(node.inputs[0], _int(node, "axis", 0)), 0)]
    elif op in ("GatherND", "ScatterND") and index == 1:
        above = [(size, 0) for size in _indexed(node)]
    elif op == "TopK" and index == 1:
        above = [(_size(node.inputs[0], _int(node, "axis", -1)), -1)]
    elif op in _RECURRENT and index == 4:
        above = [(_size(node.inputs[0], _int(node, "layout", 0)), -1)]
    elif op == "ReverseSequence" and index == 1:
        above = [(_size(node.inputs[0], _int(node, "time_axis", 0)), -1)]
    elif op == "RoiAlign" and index == 2:
        above = [(_size(node.inputs[0], 0), 0)]
    elif op in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss") and index == 1:
        above = [(_size(node.inputs[0], 1), 0)]
    for size, shift in above:
        # A fixed size with a shift is a bound too: unlike an index, the operand may equal it.
        if isinstance(size, str) and size:
            yield size, shift
        elif isinstance(size, int) and shift:
            yield str(size), shift


def _guess(reader: Reader) -> tuple[int, int] | None:
    """Guesses a range if no node limits the operand. An operand that is compared with positions is taken for a
    length."""
    node, index = reader.node, reader.index
    if node.op_type not in _COMPARES - {"Equal"} or constant(node.inputs[1 - index]) is not None:
        return None
    return (1, _SMALL)


def _size_beside(value: ir.Value) -> str:
    """Returns the dynamic axis to which the lengths in `value` refer. This is an axis of another input with equally
    many rows."""
    rows, graph = _size(value, 0), value.graph
    for other in graph.inputs if isinstance(graph, ir.Graph) else ():
        if other is value or other.shape is None or len(other.shape) < 2:
            continue
        inner = [_size(other, axis) for axis in range(1, len(other.shape))]
        if _rank(value) == 0 or (rows and _size(other, 0) == rows):
            return next((size for size in inner if isinstance(size, str) and size and size != rows), "")
    return ""


def _indexed(node: ir.Node) -> list[Dim]:
    """Returns the axes that the index tuples of a GatherND or ScatterND address; empty if unknown."""
    data, indices = node.inputs[0], node.inputs[1]
    if data is None or data.shape is None or indices is None or indices.shape is None or not len(indices.shape):
        return []
    begin, count = _int(node, "batch_dims", 0), indices.shape[-1]
    axes = range(begin, begin + count if isinstance(count, int) else len(data.shape))
    return [_size(data, axis) for axis in axes]


def _compared_with(node: ir.Node, index: int) -> list[int]:
    if node.op_type not in _COMPARES or len(node.inputs) != 2:
        return []
    numbers = constant(node.inputs[1 - index])
    if numbers is None or numbers.size > 8:
        return []
    return [int(number) for number in numbers if float(number).is_integer() and abs(float(number)) < 2**31]


def _rank(value: ir.Value | None) -> int:
    return len(value.shape) if value is not None and value.shape is not None else 0


def _size(value: ir.Value | None, axis: int) -> Dim:
    """Returns the size of an axis: a number or a text; "" if the size is unknown."""
    shape = value.shape if value is not None else None
    if shape is None or not -len(shape) <= axis < len(shape):
        return ""
    size = shape[axis]
    return size if isinstance(size, int) else size.value or ""


def _int(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return attribute.as_int() if attribute is not None and not attribute.is_ref() else default
