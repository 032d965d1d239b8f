"""Makes the model that channels are followed through: its constants are initializers, its functions are inlined."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.model.graph.copying import cloned
from onnxsmith.model.shapes.inferred import inferred
from onnxsmith.model.surgery.inlining import inlined
from onnxsmith.precision.weights import own_weights


@dataclass(frozen=True)
class Working:
    """The model with inferred shapes, and what has to be said of it."""

    model: ir.Model
    notes: tuple[str, ...]


def working(loaded: ir.Model) -> Working:
    """A copy of the model; weights are shared."""
    made, not_inlined = inlined(cloned(own_weights(loaded)))
    _lift(made)
    model, not_inferred = inferred(made)
    for node, name in zip(model.graph, _names(model), strict=True):
        node.name = name
    return Working(model, tuple(note for note in (not_inlined, not_inferred) if note))


def _names(model: ir.Model) -> list[str]:
    """A name of its own for each node: by which the report means it."""
    seen: set[str] = set()
    found = []
    for node in model.graph:
        name = node.name if node.name and node.name not in seen else f"{node.op_type}:{node.outputs[0].name}"
        seen.add(name)
        found.append(name)
    return found


def _lift(model: ir.Model) -> None:
    """Makes initializers of the Constant nodes of the main graph that hold tensors."""
    graph = model.graph
    outputs = set(graph.outputs)
    for node in list(graph):
        value = node.outputs[0] if node.op_type == "Constant" and not node.domain else None
        tensor = None if value is None else ir.convenience.get_const_tensor(value)
        if value is None or tensor is None or value in outputs:
            continue
        made = ir.Value(name=value.name, const_value=tensor, shape=ir.Shape(tensor.shape.numpy()),
                        type=ir.TensorType(tensor.dtype))  # fmt: skip
        uses = list(value.uses())
        for use in uses:
            use.node.replace_input_with(use.idx, made)
        value.name = None
        graph.remove(node, safe=True)
        graph.initializers[made.name or ""] = made
