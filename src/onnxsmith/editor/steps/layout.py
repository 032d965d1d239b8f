"""Defines `layout`, which changes the order of the axes of a graph input or output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.layouts import permutation
from onnxsmith.editor.node_placement import port
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure.fresh import Names


@dataclass(frozen=True)
class Layout(Step):
    """Changes the layout of the graph input `input`, or of the graph output `output`, by a Transpose next to it. `to`
    is a layout, `NHWC` (from `NCHW`) or `NCHW` (from `NHWC`), or the axes in their new order, "0,2,3,1". The numbers
    stay the same: the original is compared on the inputs in their old order."""

    first = ("input", "to")

    input: Any = None
    to: str | list[int] | tuple[int, ...] = ""
    output: Any = None

    def apply(self, work: Work) -> str:
        if (self.input is None) == (self.output is None) or not len(self.to):
            raise problem(
                "edit/step-argument",
                "layout needs one of input and output, and a layout in `to`",
                fix='write input = "x", to = "NHWC"',
            )
        graph, is_input = work.model.graph, self.input is not None
        value = port(list(graph.inputs if is_input else graph.outputs), self.input if is_input else self.output)
        work.infer()
        if not isinstance(value.type, ir.TensorType) or value.shape is None:
            raise problem(
                "edit/layout",
                f"the rank of {value.name} is not known",
                where=value.name or "",
                why="it is no tensor"
                if value.type is not None and not isinstance(value.type, ir.TensorType)
                else "the file declares no shape, and none follows from the graph",
                fix="choose a tensor, or declare its shape in Python, before the step: "
                f'`m.tensor("{value.name}").value.shape = onnx_ir.Shape(["N", "C", "H", "W"])`',
            )
        axes = permutation(self.to, len(value.shape), value.name or "")
        before, name = str(value.shape), value.name or ""
        if is_input:
            _permute_input(work, value, axes)
        else:
            _permute_output(work, value, axes)
        return f"{'input' if is_input else 'output'} {name}: {before} → {_permuted(value.shape, axes)}"


def _permute_input(work: Work, value: ir.Value, axes: tuple[int, ...]) -> None:
    """Makes a new input of the permuted shape. The old value becomes the result of a Transpose, so that all its
    readers, also readers in bodies, read the same value as before."""
    graph, name = work.model.graph, value.name or ""
    original = work.inputs.get(name)
    port = ir.Value(
        name=name,
        type=value.type,
        shape=_permuted(value.shape, axes),
        doc_string=value.doc_string,
        metadata_props=dict(value.metadata_props),
    )
    _move_default(graph, value, port, axes)
    graph.inputs[list(graph.inputs).index(value)] = port
    value.name = work.names.free(f"{name}_transposed")
    _transpose(graph, port, value, [axes.index(axis) for axis in range(len(axes))], first=True)
    if value.is_graph_output():  # one name cannot be an input of one layout and an output of another
        work.outputs[value.name] = work.outputs.pop(name, None)
        work.notes.append(f"the output {name} is called {value.name}: the input {name} has another layout now")
    work.adapt_candidate.append(lambda model: _old_input(model, _now(work.inputs, original, name), axes))


def _permute_output(work: Work, value: ir.Value, axes: tuple[int, ...]) -> None:
    """Makes the result of a Transpose the graph output. The result takes over the name, unless an input has this
    name."""
    graph, name = work.model.graph, value.name or ""
    made = ir.Value(name=name, type=value.type, shape=_permuted(value.shape, axes))
    if value in graph.inputs:
        made.name = work.names.free(f"{name}_transposed")
        work.notes.append(f"the output {name} is called {made.name}: the input {name} has another layout")
        work.outputs[made.name] = work.outputs.pop(name, None)
    else:
        value.name = work.names.free(f"{name}_before_transpose")
    _transpose(graph, value, made, list(axes), first=False)
    for index, one in enumerate(graph.outputs):
        if one is value:
            graph.outputs[index] = made
    now = made.name or ""
    work.forget_shape(work.outputs.get(now) or "")
    original = work.outputs.get(now)
    work.adapt_candidate.append(lambda model: _old_output(model, _now(work.outputs, original, now), axes))


def _transpose(graph: ir.Graph, value: ir.Value, result: ir.Value, perm: list[int], *, first: bool) -> None:
    node = ir.Node("", "Transpose", [value], [ir.AttrInt64s("perm", perm)], outputs=[result])
    if first and len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)


def _move_default(graph: ir.Graph, old: ir.Value, new: ir.Value, axes: tuple[int, ...]) -> None:
    """Moves the default of a graph input to the input that replaces it, with its axes permuted."""
    name, default = old.name or "", old.const_value
    graph.initializers.pop(name, None)
    old.const_value = None
    if default is not None:
        new.const_value = ir.tensor(np.ascontiguousarray(default.numpy().transpose(axes)), default.dtype, name=name)
        graph.initializers[name] = new


def _permuted(shape: ir.Shape | None, axes: tuple[int, ...]) -> ir.Shape:
    assert shape is not None
    return ir.Shape([shape[axis] for axis in axes], denotations=[shape.get_denotation(axis) for axis in axes])


def _now(ports: Mapping[str, str | None], original: str | None, name: str) -> str:
    """Returns the current name of the port, because a later step may have renamed it."""
    return next((now for now, old in ports.items() if original is not None and old == original), name)


def _old_input(model: ir.Model, name: str, axes: tuple[int, ...]) -> ir.Model:
    """Returns the edited model with the old layout of an input: the model permutes this input itself."""
    graph = model.graph
    port = next((value for value in graph.inputs if value.name == name), None)
    if port is None:
        return model
    back = tuple(map(int, np.argsort(axes)))
    old = ir.Value(name=name, type=port.type, shape=_permuted(port.shape, back))
    _move_default(graph, port, old, back)
    graph.inputs[list(graph.inputs).index(port)] = old
    port.name = Names(model).free(f"{name}_new_layout")
    _transpose(graph, old, port, list(axes), first=True)
    return model


def _old_output(model: ir.Model, name: str, axes: tuple[int, ...]) -> ir.Model:
    """Returns the edited model with the old layout of an output: the model permutes its result back."""
    graph = model.graph
    at = next((index for index, value in enumerate(graph.outputs) if value.name == name), None)
    if at is None:
        return model
    back, new = tuple(map(int, np.argsort(axes))), graph.outputs[at]
    old = ir.Value(name=name, type=new.type, shape=_permuted(new.shape, back))
    new.name = Names(model).free(f"{name}_new_layout")
    _transpose(graph, new, old, list(back), first=False)
    graph.outputs[at] = old
    return model
