"""Defines the base class of all raisings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import ClassVar

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.graph.surgery.node_insertion import Inserter


class Raising(ABC):
    """Writes an operator in the form that one of its changes gave it.

    `operators` maps each operator to the opset that changed it. `rewrite` changes the node itself, or replaces its
    outputs by those of nodes that it inserts (`Inserter.opset` is the version of the change). A change without a
    class keeps the node, if the later form takes the node's operands and attributes.
    """

    operators: ClassVar[Mapping[str, int]]

    @abstractmethod
    def rewrite(self, node: ir.Node, write: Inserter) -> str:
        """Rewrites the node and returns "". If that is impossible, changes nothing and returns the reason."""


@cache
def raisings() -> dict[tuple[str, int], Raising]:
    """Returns the raising of each operator and opset that has one."""
    found = rooms.members("onnxsmith.graph.surgery.raisings", Raising).values()
    return {change: one for one in found for change in one.operators.items()}
