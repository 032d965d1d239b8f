"""Defines `add_input`, which makes a constant a graph input."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.edited_model import Work, dims
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import captures, tensor_paths

_SHOWN = 5
"""Limits the constants that an error names. A choice: one line."""


@dataclass(frozen=True)
class AddInput(Step):
    """Makes the constant `tensor` a graph input of the same dtype and shape. It is an initializer or the result of a
    Constant node, of the main graph only. The model is compared with the original on the constant's own value."""

    first = ("tensor",)

    tensor: Any

    def apply(self, work: Work) -> str:
        value = work.find.tensor(self.tensor)
        graph, name = work.model.graph, value.name or ""
        held = ir.convenience.get_const_tensor(value)
        node = value.producer()
        if value in graph.inputs:
            raise problem("edit/is-input", f"{name!r} is a graph input already", fix="leave the step out")
        if (
            held is None
            or (node is not None and node.graph is not graph)
            or (node is None and name not in graph.initializers)
        ):
            raise _refusal(work, value, held)
        if node is not None:
            new = ir.Value(name=name)
            value.replace_all_uses_with(new, replace_graph_outputs=True)
            value.name = None
            captures.release(node)
            graph.remove(node, safe=True)
            value = new
        else:
            del graph.initializers[name]
            value.const_value = None
        value.type, value.shape = ir.TensorType(held.dtype), ir.Shape(dims(held))
        graph.inputs.append(value)
        work.inputs[name] = None
        work.resize_by(value)
        work.adapt_candidate.append(lambda model: _constant(model, name, held))
        return f"{name}: {held.dtype.name.lower()}{list(dims(held))}"


def _refusal(work: Work, value: ir.Value, held: ir.TensorProtocol | None) -> OnnxsmithError:
    graph, name = work.model.graph, value.name or ""
    inside = not any(place.value is value and not place.bodies for place in tensor_paths.places(work.model))
    own = [one.name or "" for one in graph.initializers.values() if one not in graph.inputs][:_SHOWN]
    others = f"choose a constant of the main graph: {', '.join(own)}" if own else "leave the step out"
    if held is not None:
        others = f'to change its value, use the step constant: tensor = "{name}", value = …'
    elif not inside:
        others = f"to begin the model there, use `onnxsmith extract MODEL --from {shlex.quote(name)} -o FILE`"
    return problem(
        "edit/not-constant",
        f"{name!r} is not a constant of the main graph",
        why="it belongs to a branch or a body, and only the main graph has inputs" if inside else "it is computed",
        fix=others,
    )


def _constant(model: ir.Model, name: str, tensor: ir.TensorProtocol) -> ir.Model:
    """Returns the edited model with the new input set to the constant's value."""
    value = next(one for one in model.graph.inputs if one.name == name)
    model.graph.inputs.remove(value)
    value.const_value = tensor
    model.graph.initializers[name] = value
    return model
