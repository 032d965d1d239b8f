"""Tells which operators are commutative."""

from __future__ import annotations

import onnx_ir as ir

COMMUTATIVE = frozenset(
    {"Add", "Mul", "Min", "Max", "Sum", "Mean", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
)


def is_commutative(node: ir.Node) -> bool:
    """Whether the operands of the node may be swapped. Before opset 7 they may not if `broadcast` is set, which
    broadcasts only the second operand."""
    return node.op_type in COMMUTATIVE and not node.domain and "broadcast" not in node.attributes
