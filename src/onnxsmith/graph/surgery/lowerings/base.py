"""Defines the base class of all lowerings, and common functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.node_insertion import Inserter, release


class Lowering(ABC):
    """Writes an operator in the form that it had before one of its changes.

    `operators` maps each operator to the opset that changed it. `lower` changes the node itself, or replaces its
    outputs by those of nodes that it inserts (`Inserter.opset` is the version before the change). Attributes that the
    earlier form lacks are removed afterwards if they have their defaults.
    """

    operators: ClassVar[Mapping[str, int]]
    reads: ClassVar[tuple[str, ...]] = ()
    """Names the attributes that `lower` reads. A node of a function may refer to an attribute of the function there,
    whose value each call sets; then `lowered` refuses."""

    @abstractmethod
    def lower(self, node: ir.Node, write: Inserter) -> str:
        """Lowers the node and returns "". If that is impossible, changes nothing and returns the reason."""

    def lowered(self, node: ir.Node, write: Inserter) -> str:
        """Lowers the node as `lower` does, if it has a value for each attribute that decides."""
        for name in self.reads:
            if name in node.attributes and node.attributes[name].is_ref():
                return f"`{name}` refers to an attribute of the function"
        return self.lower(node, write)


@cache
def lowerings() -> dict[tuple[str, int], Lowering]:
    """Returns the lowering of each operator and opset that has one."""
    found = rooms.members("onnxsmith.graph.surgery.lowerings", Lowering).values()
    return {change: one for one in found for change in one.operators.items()}


def numbers(value: ir.Value | None) -> list[int] | None:
    """Returns the elements of an integer tensor that is constant, or that follows from constants and static shapes;
    None if it depends on an input."""
    known = facts.constant(value)
    if known is not None:
        return [int(one) for one in known.ravel()]
    elements = facts.integers(value)
    whole = [one for one in elements or () if isinstance(one, int)]
    return whole if elements is not None and len(whole) == len(elements) else None


def rank(value: ir.Value | None) -> int | None:
    """Returns the number of dimensions of a tensor; None if it is unknown."""
    return None if value is None or value.shape is None else len(value.shape)


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """Returns the input at a position; None if it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def drop_operands(node: ir.Node, count: int) -> None:
    """Keeps the first `count` operands. Constants that nothing reads any more are removed."""
    dropped = [value for value in node.inputs[count:] if value is not None]
    node.resize_inputs(min(count, len(node.inputs)))
    for value in dropped:
        release(value)
