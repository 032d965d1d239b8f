"""Defines a fix: a rewrite of a model to another form with the same results, which a target may take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery import opset_conversion as opset
from onnxsmith.graph.surgery.node_insertion import Inserter


class Fix(ABC):
    """Defines a rewrite; has no state. The target is asked about the rewritten model, which is also compared with the
    original."""

    rank: ClassVar[int]
    """Orders the fixes: those with a smaller rank are tried first, because they change less."""

    @abstractmethod
    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        """Yields other forms of the model, each with a sentence about the change. `refused` are the refused operators
        (`Det`, `com.microsoft::Gelu`); empty if the file as a whole is refused. The model itself stays as it is."""


@dataclass(eq=False)
class Places:
    """Holds the copy, its opset, and the number of changed places."""

    model: ir.Model
    names: Names
    opset: int
    changed: int = 0

    @classmethod
    def of(cls, model: ir.Model) -> Self:
        """Makes a copy of `model` that shares its weights."""
        made = inferred(model)[0]
        return cls(made, Names(made), opset.of(model))

    def nodes(self, op: str) -> Iterator[ir.Node]:
        """Yields the nodes of an ONNX operator, also in branches and bodies."""
        for node in list(walk.nodes(self.model.graph)):
            if node.op_type == op and node.domain in ("", "ai.onnx") and node.graph is not None:
                yield node

    def inserter(self, node: ir.Node) -> Inserter:
        """Returns an inserter of nodes in front of `node`."""
        return Inserter(node, "fix_", self.opset, self.names.free)

    def replace(self, node: ir.Node, write: Inserter, result: ir.Value) -> None:
        """Replaces the only output of `node` by `result`. The new nodes get unique names."""
        for one in write.made:
            one.name = self.names.free(f"{node.name}_{one.op_type}") if node.name else None
        write.replace([result])
        self.changed += 1


def constant(value: ir.Value | None) -> np.ndarray | None:
    """Returns the array of a constant operand; None if the operand is computed or absent."""
    tensor = const_tensor(value) if value is not None else None
    return None if tensor is None else tensor.numpy()


Rewrite = Callable[[ir.Node, Inserter], "ir.Value | None"]
"""Writes the replacement of a node in front of the node, and returns the result; None leaves the node as it is."""


def rewritten(places: Places, op: str, rewrite: Rewrite) -> None:
    """Replaces each node of the operator for which `rewrite` returns a result."""
    for node in places.nodes(op):
        write = places.inserter(node)
        made = rewrite(node, write)
        if made is None:
            for one in reversed(write.made):
                write.graph.remove(one, safe=True)
            continue
        provenance.inherit(write.made, [node])
        places.replace(node, write, made)


def sizes(value: ir.Value | None) -> list[int] | None:
    """Returns the sizes of a tensor; None if a size is unknown."""
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return [int(size) for size in value.shape]  # type: ignore[arg-type]
