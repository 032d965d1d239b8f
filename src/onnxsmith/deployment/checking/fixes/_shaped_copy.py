"""A copy of a model with inferred shapes, to be changed in places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery import opset_conversion as opset
from onnxsmith.graph.surgery.node_insertion import Inserter


@dataclass(eq=False)
class Places:
    """The copy, its opset, and how many places were changed."""

    model: ir.Model
    names: Names
    opset: int
    changed: int = 0

    @classmethod
    def of(cls, model: ir.Model) -> Self:
        """A copy of `model`, weights shared."""
        made = inferred(model)[0]
        return cls(made, Names(made), opset.of(model))

    def nodes(self, op: str) -> Iterator[ir.Node]:
        """Yields the nodes of an operator of ONNX, in branches and bodies too."""
        for node in list(walk.nodes(self.model.graph)):
            if node.op_type == op and node.domain in ("", "ai.onnx") and node.graph is not None:
                yield node

    def inserter(self, node: ir.Node) -> Inserter:
        """Inserts nodes in front of `node`."""
        return Inserter(node, "fix_", self.opset, self.names.free)

    def replace(self, node: ir.Node, write: Inserter, result: ir.Value) -> None:
        """Lets `result` take the place of the only output of `node`. The new nodes have names of their own."""
        for one in write.made:
            one.name = self.names.free(f"{node.name}_{one.op_type}") if node.name else None
        write.replace([result])
        self.changed += 1


def constant(value: ir.Value | None) -> np.ndarray | None:
    """The array of a constant operand; None if it is computed or absent."""
    tensor = ir.convenience.get_const_tensor(value) if value is not None else None
    return None if tensor is None else tensor.numpy()
