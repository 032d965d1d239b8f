"""Counts the float32 weights of a model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.report.parts.quantisation import InFile
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned


@dataclass(frozen=True)
class Weights:
    """The count and the bytes of the float32 tensors in a model's initializers and Constants."""

    count: int
    nbytes: int

    def __sub__(self, other: Weights) -> Weights:
        return Weights(self.count - other.count, self.nbytes - other.nbytes)


def float32_weights(model: ir.Model) -> Weights:
    """Counts the float32 tensors of `model`; a tensor that two Constants hold counts twice."""
    sizes = [tensor.nbytes for tensor in walk.tensors(model) if tensor.dtype == ir.DataType.FLOAT]
    return Weights(len(sizes), sum(sizes))


def in_file(model: ir.Model, to: ir.DataType) -> InFile:
    """Counts the nodes of a written model, those that compute in the dtype `to`, and its float weights."""
    held = [tensor.dtype for tensor in walk.tensors(model) if tensor.dtype in (ir.DataType.FLOAT, to)]
    made = Counter(walk.op_name(node) for node in walk.nodes(model.graph))
    known, _ = inferred(model)
    narrow = sum(
        node.op_type not in ("Cast", "Constant") and any(value.dtype == to for value in node.outputs)
        for node in walk.nodes(known.graph)
    )
    return InFile(walk.count_nodes(model), narrow, made["Cast"], len(held), sum(dtype == to for dtype in held))


def stored_bytes(model: ir.Model) -> int:
    """Returns the bytes of a model's tensors; a tensor that several names share counts once."""
    return sum({id(tensor): tensor.nbytes for tensor in walk.tensors(model)}.values())


def own_weights(model: ir.Model) -> ir.Model:
    """Returns a copy without the weights among the graph inputs, which old IR versions list there. Returns the model
    itself if its IR version is newer."""
    if walk.has_own_initializers(model):
        return model
    made = cloned(model)
    made.ir_version = _OWN
    kept = [value for value in made.graph.inputs if value.name not in made.graph.initializers]
    made.graph.inputs.clear()
    made.graph.inputs.extend(kept)
    return made


_OWN = 4
"""The first IR version in which an initializer need not be a graph input (onnx IR version 4)."""


_WEIGHTED = {
    "BatchNormalization": (1, 2, 3, 4), "Conv": (1, 2), "ConvTranspose": (1, 2), "GRU": (1, 2, 3), "Gemm": (1, 2),
    "InstanceNormalization": (1, 2), "LSTM": (1, 2, 3), "LayerNormalization": (1, 2), "MatMul": (0, 1), "PRelu": (1,),
    "RNN": (1, 2, 3),
}  # fmt: skip
"""Maps operators to the operands that are weights; others, such as initial states, may be meant as inputs."""


def own_defaults(model: ir.Model) -> tuple[ir.Model, int]:
    """Returns a copy without the weights among the graph inputs that only layers read, as files of old exporters have
    them, and their number. Returns the model itself if it has none."""
    names = {
        value.name
        for value in model.graph.inputs
        if value.name in model.graph.initializers
        and value.uses()
        and all(use.idx in _WEIGHTED.get(use.node.op_type, ()) and not use.node.domain for use in value.uses())
    }
    if not names:
        return model, 0
    made = cloned(model)
    kept = [value for value in made.graph.inputs if value.name not in names]
    made.graph.inputs.clear()
    made.graph.inputs.extend(kept)
    return made, len(names)


def said_constant(count: int) -> str:
    """Returns a note on weights that were graph inputs; "" if there are none."""
    return (
        f"{count} weights were also graph inputs, which a caller could replace; now they are constants" if count else ""
    )


def replaceable(model: ir.Model) -> str:
    """Returns a note on weights that are graph inputs as well; "" if there are none."""
    held = [value for value in model.graph.inputs if value.name in model.graph.initializers]
    few = sum(value.dtype == ir.DataType.FLOAT for value in held)
    return f"{few} weights are also graph inputs, so a caller may replace them: they stay in float32" if few else ""
