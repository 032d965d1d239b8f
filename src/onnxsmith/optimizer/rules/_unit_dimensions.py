"""Follows views (Reshape, Squeeze, Unsqueeze, Flatten) that only add, remove and move dimensions of 1.

They keep the order of the other axes. An order describes a value in a chain of operators: for each of its axes, the
axis of the chain's first value that stands there, or None for a dimension of 1.
"""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts

Dims = tuple[facts.Element, ...]
Order = list[int | None]


def known_dims(value: ir.Value | None) -> Dims | None:
    """Returns the dimensions of a value if each is a number or a name, else None."""
    dims = facts.dims(value)
    known = tuple(dim for dim in dims or () if dim is not None)
    return known if dims is not None and len(known) == len(dims) else None


def first_order(dims: Dims) -> Order:
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
