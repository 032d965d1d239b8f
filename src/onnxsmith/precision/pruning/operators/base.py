"""Defines the base of operator families: how operators pass channels on, and how they change when channels are
removed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk
from onnxsmith.precision.pruning.channel_links import Cuts, Links, is_weight


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


_MOVING = {"Cast", "Dropout", "Expand", "Identity", "Relu", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
_PASSING = {"Add", "Div", "Mul", "Sub", *_MOVING}
_MOST = 32
"""The most nodes that are followed upwards. A choice: an embedding or an input is seldom further away."""


def origin(value: ir.Value) -> str:
    """Returns a clause that names the input, the embedding or the operator from which a tensor comes."""
    said = ""
    for _ in range(_MOST):
        node = value.producer()
        if node is None:
            return "an input of the graph" if value.is_graph_input() else "a stored tensor"
        first = node.inputs[0] if node.inputs else None
        said = f"of {walk.op_name(node)} {walk.node_label(node)!r}"
        if first is not None and is_weight(first) and not node.domain:
            if node.op_type == "Gather":
                return f"an embedding: rows of {first.name!r}"
            if node.op_type in _MOVING:
                return f"made from the stored tensor {first.name!r}"
        sources = node.inputs[:1] if node.op_type in _MOVING else node.inputs
        computed = [one for one in sources if one is not None and not is_weight(one)]
        if node.op_type not in _PASSING or node.domain or not computed:
            return said
        value = computed[0]
    return said
