"""Reads the tensor of a constant without onnx-ir's check of its type.

On Python 3.11 the check takes longer than the rest of shape inference at a node: it looks for each member of a
protocol."""

from __future__ import annotations

import onnx_ir as ir

REACHES: tuple[str, ...] = ()


def const_tensor(value: ir.Value) -> ir.TensorProtocol | None:
    """Returns what `ir.convenience.get_const_tensor` returns: the tensor of an initializer, also of an input's default,
    or of a `Constant` node; None for other values.

    Raises:
        ValueError: a `Constant` node does not have one attribute and one output.
    """
    if value.const_value is not None:
        return value.const_value
    node = value.producer()
    if node is None or node.op_type != "Constant" or node.domain:
        return None
    attribute = node.attributes.get("value")
    if attribute is None or attribute.type is not ir.AttributeType.TENSOR or attribute.is_ref():
        return ir.convenience.get_const_tensor(value)
    tensor: ir.TensorProtocol = attribute.value
    if tensor.name != value.name:
        tensor.name = value.name
    return tensor
