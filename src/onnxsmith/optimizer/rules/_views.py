"""Helpers for views, which are operators that keep the elements in order and only change the shape, and for targets of
Reshape.

Some views only add, remove and move dimensions of 1. They keep the order of the other axes. An order describes a value
in a chain of operators: for each of its axes, the axis of the chain's first value that stands there, or None for a
dimension of 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.optimizer.rules._patterns import integer
from onnxsmith.optimizer.rules.base import Match

VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")

Dims = Sequence[facts.Element | None]


def target(data: Dims | None, wanted: Dims | None) -> list[int] | None:
    """Returns a constant target with which a Reshape of `data` gives the dimensions `wanted`, for every size; None if
    there is none.

    A 0 copies the dimension at the same place. A -1 makes the Reshape compute one more dimension. It is used only if no
    other dimension can be empty, because the Reshape fails then. A target cannot express an empty dimension.
    """
    if data is None or wanted is None:
        return None
    written = []
    for index, dim in enumerate(wanted):
        if isinstance(dim, int):
            written.append(dim)
        elif dim is not None and index < len(data) and dim == data[index]:
            written.append(0)
        else:
            written.append(-1)
    if any(dim == 0 for dim in wanted) or written.count(-1) > 1:
        return None
    beside = [dim for dim, element in zip(wanted, written, strict=True) if element == 0]
    return None if -1 in written and not all(dim and symbols.at_least(dim, 1) for dim in beside) else written


def dims_after(node: ir.Node) -> tuple[facts.Element | None, ...] | None:
    """Returns the dimensions of the result of a view, from its shape and, if some are unknown there, from the target;
    None without a rank."""
    inferred = facts.dims(node.outputs[0])
    target = facts.integers(node.inputs[1]) if node.op_type == "Reshape" and len(node.inputs) > 1 else None
    if target is None or (inferred is not None and len(inferred) != len(target)):
        return inferred
    data, copies = facts.dims(node.inputs[0]) or (), integer(node, "allowzero", 0) == 0
    said: list[facts.Element | None] = []
    for index, element in enumerate(target):
        if element == 0 and copies:
            said.append(data[index] if index < len(data) else None)
        else:
            said.append(None if element == -1 else element)
    if inferred is None:
        return tuple(said)
    return tuple(one if isinstance(one, int) or two is None else two for one, two in zip(inferred, said, strict=True))


def is_kept(data: Dims | None, wanted: Dims | None, element: int, index: int, allowzero: int) -> bool:
    """Whether an element of a target means the same for `data` as for the old data, for which it gave `wanted`. Only a
    0 may differ."""
    if element or allowzero:
        return True
    at = slice(index, index + 1)
    return data is not None and wanted is not None and facts.same(tuple(data[at]) or None, tuple(wanted[at]))


def integers(tape: ir.tape.Tape, numbers: Sequence[int], beside: ir.Value | None) -> ir.Value:
    """Returns a new int64 constant, named after the value that it replaces."""
    name = beside.name if beside is not None and beside.name else "target"
    return tape.initializer(ir.Tensor(np.array(numbers, np.int64)), name=f"{name}_known")


def reshaped(tape: ir.tape.Tape, match: Match) -> ir.Value:
    """Returns a Reshape of `match.found["source"]` to the constant `match.found["target"]`."""
    beside = match.node.inputs[1] if len(match.node.inputs) > 1 else None
    return tape.op("Reshape", [match.found["source"], integers(tape, match.found["target"], beside)])


def axes(node: ir.Node, rank: int | None) -> tuple[int, ...] | None:
    """Returns the axes of a Squeeze or Unsqueeze, sorted and counted from 0; None if they are left out or unknown.
    `rank` is the larger rank of input and result."""
    given = node.inputs[1] if len(node.inputs) > 1 else None
    attribute = node.attributes.get("axes")
    numbers: Sequence[facts.Element] | None
    if given is not None:
        numbers = facts.integers(given)
    else:
        numbers = None if attribute is None or attribute.is_ref() else list(attribute.as_ints())
    if numbers is None or not all(isinstance(axis, int) for axis in numbers):
        return None
    found = sorted(int(axis) + (rank or 0 if int(axis) < 0 else 0) for axis in numbers)
    return None if rank is None and any(int(axis) < 0 for axis in numbers) else tuple(found)


def with_axes(
    tape: ir.tape.Tape, op_type: str, source: ir.Value, axes: Sequence[int], beside: ir.Value | None, opset: int
) -> ir.Value:
    """Writes a Squeeze or Unsqueeze in the form of the opset. New axes are named after `beside`."""
    if opset < 13:
        return tape.op(op_type, [source], {"axes": list(axes)})
    return tape.op(op_type, [source, integers(tape, axes, beside)])


def perm(node: ir.Node) -> list[int] | None:
    """Returns the permutation of a Transpose; None if it is left out and the rank is unknown."""
    given = node.attributes.get("perm")
    if given is not None:
        return None if given.is_ref() else list(given.as_ints())
    dims = facts.dims(node.inputs[0])
    return None if dims is None else list(range(len(dims)))[::-1]


KnownDims = tuple[facts.Element, ...]
Order = list[int | None]


def known_dims(value: ir.Value | None) -> KnownDims | None:
    """Returns the dimensions of a value if each is a number or a name, else None."""
    dims = facts.dims(value)
    known = tuple(dim for dim in dims or () if dim is not None)
    return known if dims is not None and len(known) == len(dims) else None


def first_order(dims: KnownDims) -> Order:
    """Returns the order of a chain's first value."""
    return [None if dim == 1 else axis for axis, dim in enumerate(dims)]


def viewed(node: ir.Node, order: Order) -> Order | None:
    """Returns the order after a view that only moves dimensions of 1; None for other views."""
    before, after = known_dims(node.inputs[0]), known_dims(node.outputs[0])
    if before is None or after is None:
        return None
    if [dim for dim in before if dim != 1] != [dim for dim in after if dim != 1]:
        return None
    axes = iter([axis for axis in order if axis is not None])
    return [None if dim == 1 else next(axes) for dim in after]


def moves_ones(view: ir.Node) -> bool:
    """Whether a view is known to only add, remove or move dimensions of 1."""
    dims = known_dims(view.inputs[0])
    return dims is not None and viewed(view, first_order(dims)) is not None
