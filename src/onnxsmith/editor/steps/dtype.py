"""Defines `dtype`, which changes the dtype of a graph input or output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.node_placement import import_operators, port
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.structure.fresh import Names


@dataclass(frozen=True)
class Dtype(Step):
    """Changes the dtype of the graph input `input`, or of the graph output `output`, to `to` (int32, float16, …), by a
    Cast next to it. Everything inside keeps its dtype. For the comparison, the original gets the same Casts, and inputs
    in the new dtype."""

    first = ("input", "to")

    input: Any = None
    to: str = ""
    output: Any = None

    def apply(self, work: Work) -> str:
        if (self.input is None) == (self.output is None) or not self.to:
            raise problem(
                "edit/step-argument",
                "dtype needs one of input and output, and a dtype in `to`",
                fix='write input = "ids", to = "int32"',
            )
        graph, is_input = work.model.graph, self.input is not None
        value = port(list(graph.inputs if is_input else graph.outputs), self.input if is_input else self.output)
        new = dtypes.read(self.to, "")
        work.infer()
        old = value.dtype
        _refuse(value, old, new)
        assert old is not None
        name = value.name or ""
        if is_input:
            original = work.inputs.get(name) or name
            renamed, inner = work.names.free(f"{name}_cast"), _inner_name(work, original)
            _cast_input(work.model, name, new, renamed)
            if value.is_graph_output():  # one name cannot be an input of one dtype and an output of another
                work.outputs[renamed] = inner if work.outputs.pop(name, None) else None
                work.notes.append(f"the output {name} is called {renamed}: the input {name} has another dtype now")
            work.adapt_reference.append(lambda model: _cast_input(model, original, new, inner))
            work.move_originals(original, inner)
        else:
            original = work.outputs.get(name) or name
            inner = _inner_name(work, original)
            _cast_output(work.model, name, new)
            work.adapt_reference.append(lambda model: _cast_output(model, original, new, inner))
            work.move_originals(original, inner)
        return f"{'input' if is_input else 'output'} {name}: {dtypes.shown(old)} → {dtypes.shown(new)}"


def _inner_name(work: Work, name: str) -> str:
    """Returns a name, unique to the step, for the original's tensor at a port with a Cast."""
    return f"{name} (in its dtype before {work.step or 'the step'})"


def _refuse(value: ir.Value, old: ir.DataType | None, new: ir.DataType) -> None:
    plain = isinstance(value.type, ir.TensorType) and old not in (None, ir.DataType.STRING)
    if plain and old != new and new != ir.DataType.STRING and value.const_value is None:
        return
    why = f"it is of {dtypes.shown(old)}" if plain else "it is no tensor of numbers, or its dtype is unknown"
    if value.const_value is not None:
        why = "it has a default, which a caller may replace; the default would need another dtype"
    raise problem(
        "edit/dtype",
        f"the dtype of {value.name} cannot become {dtypes.shown(new)}",
        where=value.name or "",
        why=why,
        fix="leave the step out" if old == new else "choose another port or dtype; `drop-input` fixes a default",
    )


def _cast_input(model: ir.Model, name: str, dtype: ir.DataType, inner: str) -> ir.Model:
    """Replaces an input by an input of the new dtype with a Cast behind it. The old value becomes the result of the
    Cast, called `inner`. So all readers of the input, also readers in bodies, read the same value as before."""
    import_operators(model)
    graph = model.graph
    value = next(value for value in graph.inputs if value.name == name)
    assert value.dtype is not None
    made = ir.Value(
        name=name, type=ir.TensorType(dtype), shape=value.shape, doc_string=value.doc_string,
        metadata_props=dict(value.metadata_props),
    )  # fmt: skip
    graph.inputs[list(graph.inputs).index(value)] = made
    value.name = inner
    node = ir.Node("", "Cast", [made], [ir.AttrInt64("to", int(value.dtype))], outputs=[value])
    if len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)
    return model


def _cast_output(model: ir.Model, name: str, dtype: ir.DataType, inner: str = "") -> ir.Model:
    """Makes the result of a Cast the output, under the output's name unless an input has that name. The tensor before
    the Cast is called `inner`, by default a free name."""
    import_operators(model)
    graph = model.graph
    at = next(index for index, value in enumerate(graph.outputs) if value.name == name)
    value = graph.outputs[at]
    made = ir.Value(name=name, type=ir.TensorType(dtype), shape=value.shape)
    if value.is_graph_input() or value.is_initializer():
        made.name = Names(model).free(f"{name}_cast")
    else:
        value.name = inner or Names(model).free(f"{name}_before_cast")
    graph.append(ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(dtype))], outputs=[made]))
    graph.outputs[at] = made
    return model
