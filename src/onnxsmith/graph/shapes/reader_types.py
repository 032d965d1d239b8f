"""Deduces the type and shape of a tensor from the nodes that read it.

An operator of an unknown domain has no schema, so inference cannot type its results.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.graph.structure import schema

_SAME_SHAPE = frozenset(
    {"Abs", "Ceil", "Clip", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu",
     "Log", "LogSoftmax", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Cos", "Softmax",
     "Softplus", "Softsign", "Sqrt", "Tanh", "Not", "Cast", "LayerNormalization", "BatchNormalization", "Dropout",
     "InstanceNormalization", "GroupNormalization", "Mish", "ThresholdedRelu", "Celu", "PRelu"}
)  # fmt: skip
"""Lists the operators whose first result has the shape of the first operand."""
_MOST_STEPS = 16
"""Limits the nodes that are followed from a tensor. A choice."""


def read_off(value: ir.Value, opsets: Mapping[str, int], steps: int = _MOST_STEPS) -> None:
    """Sets a missing type and shape of a tensor.

    The type is the type of a reader's operand or result with the same type variable. The shape is the shape of the
    result of a reader that keeps shapes; it may follow from readers of that result.
    """
    for use in value.uses():
        node, place = use
        version = opsets.get(node.domain)
        known = schema.find(node.op_type, node.domain, version) if version is not None else None
        formal = known.input(place) if known is not None else None
        # Operands of a mixed variadic parameter need not share a type.
        if known is None or formal is None or formal.mixed:
            continue
        keeps_shape = place == 0 and node.op_type in _SAME_SHAPE and not node.domain
        result = node.outputs[0]
        if keeps_shape and steps and (result.type is None or result.shape is None):
            read_off(result, opsets, steps - 1)
        if value.type is None:
            inputs = ((one, known.input(at)) for at, one in enumerate(node.inputs))
            outputs = ((one, known.output(at)) for at, one in enumerate(node.outputs))
            for one, other in (*inputs, *outputs):
                if one is not None and one.type is not None and other is not None and other.type == formal.type:
                    value.type = one.type
                    break
        if value.shape is None and keeps_shape:
            value.shape = result.shape


def channels(value: ir.Value) -> int | None:
    """Returns the size of axis 1 that the weights of a reader fix: a convolution's or a batch normalisation's."""
    for node, place in value.uses():
        weight = node.inputs[1] if len(node.inputs) > 1 else None
        shape = None if weight is None else weight.shape
        if place or node.domain or shape is None:
            continue
        axis = {"BatchNormalization": 0, "InstanceNormalization": 0, "Conv": 1, "ConvTranspose": 0}.get(node.op_type)
        size = None if axis is None else shape[axis]
        if isinstance(size, int):
            return size * (node.attributes.get_int("group", 1) if node.op_type == "Conv" else 1)
        if node.op_type in _SAME_SHAPE and (found := channels(node.outputs[0])) is not None:
            return found
    return None
