"""Defines the base of rules: the formula for the multiply-accumulates of a family of operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.graph.structure.walk import op_name

Dim = int | str
"""Is a size, or a symbolic dimension."""
Dims = tuple[Dim, ...]
Products = Sequence[Sequence[Dim]]
"""Lists products of sizes; the sum of the products is the count."""


class MacRule(ABC):
    """Counts the multiply-accumulates of some operators. Rules are found by walking this folder.

    A multiply-accumulate is one multiplication and one addition to a sum. Bias additions are not counted. Products with
    padded zeros are counted, as usual.
    """

    operators: ClassVar[tuple[str, ...]]
    """Lists the operators: `Conv`, or `com.microsoft::FusedConv` for an operator of another domain."""

    @abstractmethod
    def products(self, node: ir.Node) -> Products | None:
        """Returns the products whose sum is the node's count; None if a needed shape or attribute is unknown. The
        shapes of the model are inferred."""


def rule_of(node: ir.Node) -> MacRule | None:
    """Returns the rule for a node's operator; None if there is none."""
    return _by_operator().get(op_name(node))


@cache
def _by_operator() -> dict[str, MacRule]:
    members = rooms.members("onnxsmith.viewer.inspection.mac_rules", MacRule)
    return {operator: member for member in members.values() for operator in member.operators}


def dims(value: ir.Value | None) -> Dims | None:
    """Returns the shape if every dimension is a number or has a name, else None."""
    if value is None:
        return None
    shape = value.shape
    if shape is None and value.const_value is not None:
        return tuple(value.const_value.shape.numpy())
    if shape is None:
        return None
    found = [dim if isinstance(dim, int) else dim.value for dim in shape]
    named = [dim for dim in found if dim is not None]
    return tuple(named) if len(named) == len(found) else None


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """Returns an input; None if the input is absent."""
    return node.inputs[index] if index < len(node.inputs) else None


def dims_in(node: ir.Node, index: int) -> Dims | None:
    """Returns the shape of an input; None if the shape is unknown or the input absent."""
    return dims(operand(node, index))


def dims_out(node: ir.Node, index: int = 0) -> Dims | None:
    """Returns the shape of an output; None if the shape is unknown or the output absent."""
    return dims(node.outputs[index]) if index < len(node.outputs) else None
