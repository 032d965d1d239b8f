"""Defines the base of operator families: how operators pass channels on, and how they change when channels are
removed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Links
from onnxsmith.precision.pruning.cuts import Cuts


class Operator(ABC):
    """A family of operators. Families are found by walking this folder.

    If `link` neither ties nor pins a live axis of an input, the axis is pinned as not understood. Weights are cut along
    each tied axis without the family's help.
    """

    ops: ClassVar[tuple[str, ...]]
    """The operators of the family, in ONNX's default domain."""

    @abstractmethod
    def link(self, node: ir.Node, links: Links) -> None:
        """Ties the elements that can only be removed together. Shapes are inferred before."""

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:  # noqa: B027 — most operators store no sizes
        """Changes attributes and operands that hold sizes. The node's tensors still have their old shapes."""


def integer(node: ir.Node, name: str, default: int) -> int:
    """Returns an integer attribute."""
    attribute = node.attributes.get(name)
    return default if attribute is None or attribute.is_ref() else attribute.as_int()


SELECTING = 9
"""The first opset with Where (ONNX Changelog.md), with which computed sizes are changed."""


def can_resize(node: ir.Node, index: int) -> bool:
    """Whether `Cuts.resize` can change elements of an operand. It can if the operand is constant, a vector of known
    length, or absent."""
    value = operand(node, index)
    if value is None or facts.constant(value) is not None:
        return True
    known = value.shape is not None and len(value.shape) == 1 and isinstance(value.shape[0], int)
    return known and value.dtype == ir.DataType.INT64 and facts.opset(node) >= SELECTING


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """Returns an operand; None if it is absent."""
    return node.inputs[index] if index < len(node.inputs) else None
