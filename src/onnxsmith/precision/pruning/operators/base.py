"""Defines how an operator passes channels on, and what of it changes when channels are removed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.pruning.channel_links import Links
from onnxsmith.precision.pruning.cuts import Cuts


class Operator(ABC):
    """A family of operators. Families are found by walking this folder.

    A live axis of an input that `link` neither ties nor pins is pinned as not understood. Weights are cut without the
    family's help: along each axis that it ties.
    """

    ops: ClassVar[tuple[str, ...]]
    """The operators, of ONNX's own domain."""

    @abstractmethod
    def link(self, node: ir.Node, links: Links) -> None:
        """Ties the elements that can only be removed together. All shapes that are known are inferred."""

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:  # noqa: B027 — most operators store no sizes
        """Changes attributes and operands that hold sizes. The shapes of the node's tensors are those from before."""


def integer(node: ir.Node, name: str, default: int) -> int:
    """An attribute, an int."""
    attribute = node.attributes.get(name)
    return default if attribute is None or attribute.is_ref() else attribute.as_int()


SELECTING = 9
"""The opset that has Where (ONNX Changelog.md), with which computed sizes are changed."""


def can_resize(node: ir.Node, index: int) -> bool:
    """Whether `Cuts.resize` can change elements of an operand: it is constant, or a vector of a known length, or left
    out."""
    value = operand(node, index)
    if value is None or facts.constant(value) is not None:
        return True
    known = value.shape is not None and len(value.shape) == 1 and isinstance(value.shape[0], int)
    return known and value.dtype == ir.DataType.INT64 and facts.opset(node) >= SELECTING


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """An operand, None if it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None
