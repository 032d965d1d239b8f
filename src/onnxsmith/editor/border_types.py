"""Completes the types of tensors that become inputs or outputs of a part.

An operator of an unknown domain has no schema, so inference cannot type its results. An input or output without a type
breaks the ONNX specification.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import schema
from onnxsmith.graph.structure.walk import op_name

_SAME_SHAPE = frozenset(
    {"Abs", "Ceil", "Clip", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu",
     "Log", "LogSoftmax", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Cos", "Softmax",
     "Softplus", "Softsign", "Sqrt", "Tanh", "Not", "Cast", "LayerNormalization", "BatchNormalization"}
)  # fmt: skip
"""Lists the operators whose first result has the shape of the first operand."""


def complete(starts: Sequence[ir.Value], ends: Sequence[ir.Value], opsets: dict[str, int]) -> None:
    """Sets missing types and shapes of the border tensors, deduced from the nodes that read them.

    Raises:
        OnnxsmithError: `edit/untyped` if a tensor stays without a type or a shape.
    """
    for option, values in (("from", starts), ("to", ends)):
        for value in values:
            if not _is_typed(value):
                _read_off(value, opsets)
            if not _is_typed(value) and not value.is_graph_output():  # the whole model has such an output already
                raise _refused(option, value, values)


def _is_typed(value: ir.Value) -> bool:
    return value.type is not None and (value.shape is not None or not isinstance(value.type, ir.TensorType))


def _read_off(value: ir.Value, opsets: dict[str, int]) -> None:
    """Deduces a tensor's type and shape from its readers. The type is the type of a reader's operand or result with the
    same type variable. The shape is the shape of the result of a reader that keeps shapes."""
    for use in value.uses():
        node, place = use
        version = opsets.get(node.domain)
        known = schema.find(node.op_type, node.domain, version) if version is not None else None
        formal = known.input(place) if known is not None else None
        # Operands of a mixed variadic parameter need not share a type.
        if known is None or formal is None or formal.mixed:
            continue
        if value.type is None:
            inputs = ((one, known.input(at)) for at, one in enumerate(node.inputs))
            outputs = ((one, known.output(at)) for at, one in enumerate(node.outputs))
            for one, other in (*inputs, *outputs):
                if one is not None and one.type is not None and other is not None and other.type == formal.type:
                    value.type = one.type
                    break
        if value.shape is None and place == 0 and node.op_type in _SAME_SHAPE and not node.domain:
            value.shape = node.outputs[0].shape


def _refused(option: str, value: ir.Value, values: Sequence[ir.Value]) -> OnnxsmithError:
    lacks = "type" if value.type is None else "shape"
    node = value.producer()
    maker = op_name(node) if node is not None else "a node"
    inside = (
        "whose shape inference does not find it" if node is None or not node.domain else "of which nothing is known"
    )
    others = list(dict.fromkeys(_nearest(value, forward=option == "to")))
    kept = [one.name or "" for one in values if one is not value]
    names = list(dict.fromkeys([*kept, *(one.name or "" for one in others)]))
    whole = " ".join(f"--{option} {shlex.quote(name)}" for name in names)
    return problem(
        "edit/untyped",
        f"the {lacks} of {value.name!r} is unknown, so that it cannot be an {'output' if option == 'to' else 'input'}",
        why=f"it is a result of {maker}, {inside}",
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
