"""Completes the types of tensors that become inputs or outputs of a part.

An operator of an unknown domain has no schema, so inference cannot type its results. An input or output without a type
breaks the ONNX specification.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.graph.shapes.reader_types import read_off
from onnxsmith.graph.structure.walk import op_name


def complete(starts: Sequence[ir.Value], ends: Sequence[ir.Value], opsets: dict[str, int]) -> None:
    """Sets missing types and shapes of the border tensors, deduced from the nodes that read them.

    Raises:
        OnnxsmithError: `edit/untyped` if a tensor stays without a type or a shape.
    """
    for option, values in (("from", starts), ("to", ends)):
        for value in values:
            if not _is_typed(value):
                read_off(value, opsets)
            if not _is_typed(value) and not value.is_graph_output():  # the whole model has such an output already
                raise _refused(option, value, values)


def _is_typed(value: ir.Value) -> bool:
    return value.type is not None and (value.shape is not None or not isinstance(value.type, ir.TensorType))


def _refused(option: str, value: ir.Value, values: Sequence[ir.Value]) -> OnnxsmithError:
    lacks = "type" if value.type is None else "shape"
    node = value.producer()
    maker = op_name(node) if node is not None else "a node"
    inside = (
        "whose shape inference does not find it"
        if node is None or not node.domain
        else "about which onnx has no information"
    )
    others = list(dict.fromkeys(_nearest(value, forward=option == "to")))
    kept = [one.name or "" for one in values if one is not value]
    names = list(dict.fromkeys([*kept, *(one.name or "" for one in others)]))
    whole = " ".join(f"--{option} {pasted(name)}" for name in names)
    return problem(
        "edit/untyped",
        f"the {lacks} of {value.name!r} is unknown, so this tensor cannot be an "
        f"{'output' if option == 'to' else 'input'}",
        why=f"the tensor is a result of {maker}, {inside}",
        fix=f"{'end' if option == 'to' else 'start'} the part at tensors whose {lacks} is known: {whole}"
        if others
        else f"give the tensor a {lacks} in the model (value_info), or leave --{option} out",
    )


def _nearest(value: ir.Value, *, forward: bool) -> Iterator[ir.Value]:
    """Yields the nearest typed tensors before an untyped tensor, or behind it with `forward`."""
    seen: set[ir.Value] = set()
    queue = [value]
    while queue:
        for one in _next(queue.pop(0), forward):
            if one in seen or one.const_value is not None:
                continue
            seen.add(one)
            if _is_typed(one):
                yield one
            else:
                queue.append(one)


def _next(value: ir.Value, forward: bool) -> Collection[ir.Value]:
    if forward:
        return [one for use in value.uses() for one in use.node.outputs if one.name]
    node = value.producer()
    return [one for one in node.inputs if one is not None] if node is not None else []
