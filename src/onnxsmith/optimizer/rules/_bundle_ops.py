"""Plans how operators on the parts of a bundle become one operator on the whole; see `_bundles.py`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.attribute_keys import literals
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._bundles import Bundle, Operand, Plan, Planner, Region, Write, alike, bundle
from onnxsmith.optimizer.rules._patterns import UNARY, integer

_SLACK = 1024
"""Limits the bytes by which joined constants may be larger than the separate constants. A choice: fewer nodes are worth
1 kB."""

Nodes = tuple[ir.Node, ...]


def _results(nodes: Nodes, axis: int) -> tuple[Bundle, ...] | None:
    """Returns the nodes' results as bundles along the axis."""
    found = [bundle([node.outputs[index] for node in nodes], axis) for index in range(len(nodes[0].outputs))]
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(found) else None


def _alike(nodes: Nodes) -> bool:
    """Whether the nodes have equal attributes, all of them numbers, texts or lists of these."""
    found = {literals(node) for node in nodes}
    return len(found) == 1 and None not in found


def _shared(operand: Operand) -> bool:
    """Whether all parts share this operand."""
    return not isinstance(operand, Bundle) and alike(operand)


def _again(node: ir.Node) -> Write:
    """Returns a function that writes a copy of the first node, which reads the wholes instead of the parts."""

    def write(tape: ir.tape.Tape, wholes: Sequence[ir.Value | None]) -> Sequence[ir.Value]:
        inputs = [old if new is None else new for old, new in zip(node.inputs, wholes, strict=True)]
        return tape.op_multi_out(node.op_type, inputs, dict(node.attributes), num_outputs=len(node.outputs))

    return write


def _same_axis(nodes: Nodes, operands: Sequence[Operand]) -> Plan | None:
    """Plans an elementwise operator along the same axis."""
    first = operands[0]
    if not isinstance(first, Bundle) or not _alike(nodes) or not all(_shared(other) for other in operands[1:]):
        return None
    results = _results(nodes, first.axis)
    return None if results is None else Plan(results, _again(nodes[0]))


def _last_axes(nodes: Nodes, operands: Sequence[Operand], *, default: int) -> Plan | None:
    """Plans an operator that works along an axis, or on all axes from there on, if that axis is behind the axis of the
    bundle."""
    first, axis = operands[0], integer(nodes[0], "axis", default)
    if not isinstance(first, Bundle) or axis is None or axis % len(first.dims) <= first.axis:
        return None
    return _same_axis(nodes, operands)


def _transpose(nodes: Nodes, operands: Sequence[Operand]) -> Plan | None:
    """Plans a Transpose with the permutation that most parts have. Parts with another permutation are transposed once
    more afterwards."""
    whole = operands[0]
    every = [_views.perm(node) for node in nodes]
    perms = [perm for perm in every if perm is not None]
    if not isinstance(whole, Bundle) or len(perms) < len(every):
        return None
    common = list(Counter(map(tuple, perms)).most_common(1)[0][0])
    axis = common.index(whole.axis)
    moved = [ir.Value(shape=_permuted(value, common)) for value in whole.values]
    result = bundle(moved, axis)
    if result is None:
        return None
    after = tuple(None if perm == common else [common.index(old) for old in perm] for perm in perms)
    values = tuple(node.outputs[0] for node in nodes)

    def write(tape: ir.tape.Tape, wholes: Sequence[ir.Value | None]) -> Sequence[ir.Value]:
        return [tape.op("Transpose", [wholes[0]], {"perm": common})]

    return Plan((Bundle(values, axis, result.sizes, after),), write)


def _permuted(value: ir.Value, perm: Sequence[int]) -> ir.Shape:
    dims = facts.dims(value) or ()
    return ir.Shape([dims[old] for old in perm])


def _reshape(nodes: Nodes, operands: Sequence[Operand]) -> Plan | None:
    """Plans a Reshape that keeps the axes before the bundle's axis, and the number of elements in the axes after it."""
    whole = operands[0]
    if not isinstance(whole, Bundle):
        return None
    results = _results(nodes, whole.axis)
    if results is None:
        return None
    after = results[0]
    if not facts.same(whole.dims[: whole.axis], after.dims[: after.axis]):
        return None
    before_rest, after_rest = whole.dims[whole.axis + 1 :], after.dims[after.axis + 1 :]
    numbers = [dim for dim in (*before_rest, *after_rest) if isinstance(dim, int)]
    if len(numbers) < len(before_rest) + len(after_rest) or 0 in numbers:
        return None
    row, new_row = math.prod(numbers[: len(before_rest)]), math.prod(numbers[len(before_rest) :])
    if any(old * row != new * new_row for old, new in zip(whole.sizes, after.sizes, strict=True)):
        return None
    target = _views.target(whole.dims, after.dims)
    if target is None:
        return None

    def write(tape: ir.tape.Tape, wholes: Sequence[ir.Value | None]) -> Sequence[ir.Value]:
        shape = tape.initializer(ir.Tensor(np.array(target, np.int64)), name="target")
        return [tape.op("Reshape", [wholes[0], shape])]

    return Plan(results, write)


def _binary(nodes: Nodes, operands: Sequence[Operand]) -> Plan | None:
    """Plans a broadcasting operator of two values, each of which is a bundle, the same for all parts, or constant.
    Leaves operators without effect to algebra/neutral-operand."""
    if not _alike(nodes) or facts.opset(nodes[0]) < 7 or any(_is_neutral(node) for node in nodes):
        return None
    whole = next(operand for operand in operands if isinstance(operand, Bundle))
    place = whole.axis - len(whole.dims)
    results = _results(nodes, place)
    if results is None or results[0].sizes != whole.sizes:
        return None
    joined: list[ir.TensorProtocol | None] = []
    for operand in operands:
        if isinstance(operand, Bundle):
            if operand.axis - len(operand.dims) != place or operand.sizes != whole.sizes:
                return None
            joined.append(None)
        elif _shared(operand) and _is_one(operand[0], place):
            joined.append(None)
        else:
            array = _joined(operand, place, whole.sizes)
            if array is None:
                return None
            joined.append(ir.tensor(array, name=f"{operand[0].name if operand[0] else ''}_joined"))

    def write(tape: ir.tape.Tape, wholes: Sequence[ir.Value | None]) -> Sequence[ir.Value]:
        inputs = [old if new is None else new for old, new in zip(nodes[0].inputs, wholes, strict=True)]
        for index, tensor in enumerate(joined):
            if tensor is not None:
                inputs[index] = tape.initializer(tensor)
        return [tape.op(nodes[0].op_type, inputs, dict(nodes[0].attributes))]

    return Plan(results, write)


def _completed(at: Bundle, readers: Sequence[ir.Node | None]) -> Plan | None:
    """Plans a constant summand or factor that only some parts have: the other parts get 0 or 1."""
    pairs = [_with_constant(value, node) for value, node in zip(at.values, readers, strict=True)]
    op_types = {node.op_type for node, _ in filter(None, pairs)}
    if len(op_types) != 1:
        return None
    op_type, dtype = op_types.pop(), at.values[0].dtype
    if dtype is None:
        return None
    place = at.axis - len(at.dims)
    neutral = np.full((), _NEUTRAL[op_type], dtype.numpy())
    freed = sum(_own_bytes(found[1]) for found in pairs if found is not None)
    arrays = [neutral if found is None else facts.constant(found[1]) for found in pairs]
    array = _along(arrays, place, at.sizes, freed)
    if array is None or array.ndim > len(at.dims):
        return None
    values = [old if found is None else found[0].outputs[0] for old, found in zip(at.values, pairs, strict=True)]

    def write(tape: ir.tape.Tape, wholes: Sequence[ir.Value | None]) -> Sequence[ir.Value]:
        return [tape.op(op_type, [wholes[0], tape.initializer(ir.tensor(array), name="constants_joined")])]

    return Plan((Bundle(tuple(values), at.axis, at.sizes),), write)


_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}


def _constant_of(node: ir.Node) -> tuple[ir.Value, npt.NDArray[Any]] | None:
    """Returns the constant operand of a node of `_NEUTRAL`."""
    places = (0, 1) if node.op_type in ("Add", "Mul") else (1,)
    for value in (node.inputs[place] for place in places):
        array = facts.constant(value)
        if value is not None and array is not None:
            return value, array
    return None


def _is_neutral(node: ir.Node) -> bool:
    found = _constant_of(node) if node.op_type in _NEUTRAL else None
    return found is not None and bool((found[1] == _NEUTRAL[node.op_type]).all())


def _with_constant(value: ir.Value, node: ir.Node | None) -> tuple[ir.Node, ir.Value] | None:
    """Returns the node and its constant, if it is one of `_NEUTRAL`, keeps the value's shape and changes something."""
    maker = value.producer()
    if node is None or node.op_type not in _NEUTRAL or node.domain or maker is None or node.graph is not maker.graph:
        return None
    found = _constant_of(node)
    if found is None or _is_neutral(node) or not facts.same(facts.dims(value), facts.dims(node.outputs[0])):
        return None
    return node, found[0]


def _is_one(value: ir.Value | None, place: int) -> bool:
    """Whether a value has no axis at `place`, counted from the end, or size 1 there."""
    dims = facts.dims(value)
    return dims is not None and (len(dims) < -place or dims[place] == 1)


def _joined(operand: tuple[ir.Value | None, ...], place: int, sizes: Sequence[int]) -> npt.NDArray[Any] | None:
    """Joins the constants of all parts along the axis at `place`, counted from the end."""
    arrays = [facts.constant(value) for value in operand]
    return _along(arrays, place, sizes, sum(_own_bytes(value) for value in dict.fromkeys(operand)))


def _along(
    arrays: Sequence[npt.NDArray[Any] | None], place: int, sizes: Sequence[int], freed: int
) -> npt.NDArray[Any] | None:
    """Joins arrays that broadcast to parts of these sizes; None if the result is over 1 kB larger than the freed
    bytes."""
    known = [array for array in arrays if array is not None]
    if len(known) < len(arrays) or any(array.dtype != known[0].dtype for array in known):
        return None
    rank = max(-place, *(array.ndim for array in known))
    full = [array.reshape((1,) * (rank - array.ndim) + array.shape) for array in known]
    if any(array.shape[place] not in (1, size) for array, size in zip(full, sizes, strict=True)):
        return None
    shapes = [(*array.shape[:place], 1, *array.shape[rank + place + 1 :]) for array in full]
    common = list(np.broadcast_shapes(*shapes))
    parts = []
    for array, size in zip(full, sizes, strict=True):
        common[place] = size
        parts.append(np.broadcast_to(array, common))
    made = sum(part.nbytes for part in parts)
    return np.concatenate(parts, axis=place) if made <= freed + _SLACK else None


def _own_bytes(value: ir.Value | None) -> int:
    """Returns the bytes that are freed with a constant's only reader; 0 for other values."""
    tensor = None if value is None or len(value.uses()) > 1 else const_tensor(value)
    return 0 if tensor is None else tensor.nbytes


def _moving_axis(nodes: Nodes, operands: Sequence[Operand]) -> Plan | None:
    """Plans an Unsqueeze or Squeeze of other axes."""
    whole = operands[0]
    if not isinstance(whole, Bundle) or not _alike(nodes) or not all(_shared(other) for other in operands[1:]):
        return None
    given = nodes[0].attributes.get("axes")
    array = facts.constant(nodes[0].inputs[1]) if len(nodes[0].inputs) > 1 else None
    axes = list(given.as_ints()) if given is not None else None if array is None else array.ravel().tolist()
    dims = facts.dims(nodes[0].outputs[0] if nodes[0].op_type == "Unsqueeze" else whole.values[0])
    if axes is None or dims is None:
        return None
    places = {int(axis) % len(dims) for axis in axes}
    if nodes[0].op_type == "Squeeze":
        moved = None if whole.axis in places else whole.axis - sum(axis < whole.axis for axis in places)
    else:
        moved = [axis for axis in range(len(dims)) if axis not in places][whole.axis]
    results = None if moved is None else _results(nodes, moved)
    return None if results is None else Plan(results, _again(nodes[0]))


def _slice(nodes: Nodes, operands: Sequence[Operand]) -> Plan | None:
    """Plans a Slice along other axes."""
    whole = operands[0]
    if not isinstance(whole, Bundle) or len(operands) < 3:
        return None
    starts, axes = (facts.constant(value) for value in (nodes[0].inputs[1], (*nodes[0].inputs, None)[3]))
    if starts is None or (len(nodes[0].inputs) > 3 and nodes[0].inputs[3] is not None and axes is None):
        return None
    along = range(starts.size) if axes is None else axes.ravel().tolist()
    if whole.axis in {int(axis) % len(whole.dims) for axis in along}:
        return None
    return _same_axis(nodes, operands)


def _concat(nodes: Nodes, operands: Sequence[Operand]) -> Plan | None:
    """Plans a Concat of bundles along another axis."""
    whole, axis = operands[0], integer(nodes[0], "axis", 0)
    if not isinstance(whole, Bundle) or axis is None or axis % len(whole.dims) == whole.axis or not _alike(nodes):
        return None
    for other in operands:
        if not isinstance(other, Bundle) or (other.axis, other.sizes) != (whole.axis, whole.sizes):
            return None
    results = _results(nodes, whole.axis)
    return None if results is None else Plan(results, _again(nodes[0]))


def _split(nodes: Nodes, operands: Sequence[Operand]) -> Plan | None:
    """Plans a Split along another axis."""
    whole, axis = operands[0], integer(nodes[0], "axis", 0)
    if not isinstance(whole, Bundle) or axis is None or axis % len(whole.dims) == whole.axis:
        return None
    return _same_axis(nodes, operands)


_PLANNERS: dict[str, Planner] = {
    **dict.fromkeys((*UNARY, "Clip", "LeakyRelu"), _same_axis),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod"), _binary),
    **dict.fromkeys(("Unsqueeze", "Squeeze"), _moving_axis),
    "Softmax": partial(_last_axes, default=-1),
    "LayerNormalization": partial(_last_axes, default=-1),
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Slice": _slice,
    "Concat": _concat,
    "Split": _split,
}
"""Gives the planner of each operator type."""


def region(root: Bundle) -> Region:
    """Returns the region of all nodes that can run on the whole of a bundle."""
    return Region(root, _PLANNERS, _completed)


def waits(found: Region) -> bool:
    """Whether neutral nodes (+ 0, * 1) read the region's results. Other rules must remove them first."""
    values = [value for end in found.ends for value in end.values]
    readers = [reader for value in values for reader in value.consumers()]
    return any(_is_neutral(reader) and not reader.outputs[0].is_graph_output() for reader in readers)
