"""Infers shapes of sequences: the shape of a sequence's value is the shape of all its elements.

A size that differs between elements is a new name there. Every element that is taken out gets a name of its own for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes.facts import integer

Infer = Callable[[Any, ir.Node], None]
Dim = int | ir.SymbolicDim


def around(infer: Infer) -> Infer:
    """Wraps the engine's rule for an operator on sequences: adds the shapes of elements to its results."""

    def careful(context: Any, node: ir.Node) -> None:
        infer(context, node)
        shape = _SHAPES[node.op_type](context, node)
        if shape is not None and node.outputs and node.outputs[0].shape is None:
            node.outputs[0].shape = shape

    return careful


def mapped(infer: Infer) -> Infer:
    """Gives each result of a SequenceMap the type and shape of its body's result; a size that may differ between
    elements gets a new name."""

    def careful(context: Any, node: ir.Node) -> None:
        infer(context, node)
        body = node.attributes["body"].as_graph()
        for value, result in zip(node.outputs, body.outputs, strict=False):
            if value.type is None and result.type is not None:
                context.set_type(value, ir.SequenceType(result.type))
            value.shape = value.shape or _own(context, result.shape)

    return careful


def enter_map(context: Any, node: ir.Node) -> None:
    """Gives the inputs of a SequenceMap's body the types and shapes of the elements."""
    body = node.attributes.get("body")
    if body is None or body.is_ref():
        return
    for given, value in zip(node.inputs, body.as_graph().inputs, strict=False):
        if given is None or given.type is None:
            continue
        if isinstance(given.type, ir.SequenceType):
            value.type, shape = value.type or given.type.elem_type, _own(context, given.shape)
        else:
            value.type, shape = value.type or given.type, given.shape
        value.shape = value.shape or shape


def _own(context: Any, shape: ir.Shape | None) -> ir.Shape | None:
    """Returns the shape of one element, with new names where the engine made up a name, because other elements may have
    other sizes there."""
    if shape is None:
        return None
    return ir.Shape([dim if _is_shared(context, dim) else context.new_symbolic_dim() for dim in shape])


def _is_shared(context: Any, dim: Dim) -> bool:
    return isinstance(dim, int) or (dim.value is not None and not context.is_generated_symbol(dim.value))


def _joined(context: Any, shapes: Iterable[ir.Shape | None]) -> ir.Shape | None:
    """Returns the common shape of elements with these shapes; None if one is unknown or the ranks differ."""
    known = list(shapes)
    first = known[0] if known else None
    if first is None or any(shape is None or len(shape) != len(first) for shape in known):
        return None
    columns = zip(*(shape for shape in known if shape is not None), strict=True)
    return ir.Shape([dims[0] if len(set(dims)) == 1 else context.new_symbolic_dim() for dims in columns])


def _construct(context: Any, node: ir.Node) -> ir.Shape | None:
    return _joined(context, (value.shape for value in node.inputs if value is not None))


def _at(context: Any, node: ir.Node) -> ir.Shape | None:
    return _own(context, _first(node).shape)


def _insert(context: Any, node: ir.Node) -> ir.Shape | None:
    sequence, tensor = node.inputs[:2]
    if sequence is None or tensor is None:
        return None
    made = sequence.producer()
    # the first tensor in an empty sequence decides the shape of the elements
    if made is not None and made.op_type == "SequenceEmpty" and not made.domain:
        return tensor.shape
    return _joined(context, (sequence.shape, tensor.shape))


def _erase(context: Any, node: ir.Node) -> ir.Shape | None:
    return _first(node).shape


def _split(context: Any, node: ir.Node) -> ir.Shape | None:
    shape = _first(node).shape
    axis = _axis(node, shape, default=0)
    if shape is None or axis is None:
        return None
    dims: list[Dim] = list(shape)
    split = node.inputs[1] if len(node.inputs) > 1 else None
    if split is not None:
        size = _chunk(split, dims[axis])
        dims[axis] = context.new_symbolic_dim() if size is None else size
    elif integer(node, "keepdims", 1):
        dims[axis] = 1
    else:
        del dims[axis]
    return ir.Shape(dims)


def _chunk(split: ir.Value, whole: Dim) -> int | None:
    """Returns the size of all parts; None if they differ or are unknown. A scalar `split` leaves a smaller last part if
    it does not divide the size."""
    tensor = const_tensor(split)
    if tensor is None or split.is_graph_input():
        return None
    sizes = [int(one) for one in tensor.numpy().reshape(-1)]
    if len(tensor.shape) == 0:
        return sizes[0] if isinstance(whole, int) and sizes[0] > 0 and whole % sizes[0] == 0 else None
    return sizes[0] if len(set(sizes)) == 1 else None


def _concat(context: Any, node: ir.Node) -> ir.Shape | None:
    shape = _own(context, _first(node).shape)
    is_new = bool(integer(node, "new_axis", 0))
    axis = _axis(node, shape, default=None, more=is_new)
    if shape is None or axis is None:
        return None
    dims: list[Dim] = list(shape)
    dims[axis : axis + (not is_new)] = [context.new_symbolic_dim()]
    return ir.Shape(dims)


def _axis(node: ir.Node, shape: ir.Shape | None, *, default: int | None, more: bool = False) -> int | None:
    """Returns the axis, counted from the front; None if it is unknown or out of range. With `more`, the result has one
    axis more than the shape."""
    axis = integer(node, "axis", default)
    if shape is None or axis is None:
        return None
    rank = len(shape) + more
    return axis % rank if rank and -rank <= axis < rank else None


def _first(node: ir.Node) -> ir.Value:
    value: Sequence[ir.Value | None] = node.inputs
    found = value[0]
    assert found is not None  # the engine's rule refuses it
    return found


_SHAPES: dict[str, Callable[[Any, ir.Node], ir.Shape | None]] = {
    "SequenceConstruct": _construct,
    "SequenceAt": _at,
    "SequenceInsert": _insert,
    "SequenceErase": _erase,
    "SplitToSequence": _split,
    "ConcatFromSequence": _concat,
}
OPERATORS = tuple(_SHAPES)
