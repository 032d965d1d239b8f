"""Defines `drop_input`, which removes graph inputs, or fixes them to a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import first_few
from onnxsmith.editor.edited_model import Work, dims
from onnxsmith.editor.node_selectors import Takes
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.structure import tensor_paths, walk


@dataclass(frozen=True)
class DropInput(Step):
    """Removes the graph inputs `input` (a name, a name with `*`, or a list of names). If nodes read an input, `value`
    takes its place: a number, a list or an array. A number fills a shape without symbolic dimensions. Without `value`
    the default of the input becomes a constant, as for weights that are also inputs. A model of IR version 3 then
    becomes one of version 4, the first with constants that are not inputs. A name with `*` skips inputs that need a
    value."""

    first = ("input", "value")

    input: Any
    value: Any = None

    def apply(self, work: Work) -> str:
        graph = work.model.graph
        asked = values = work.find.tensors(self.input, Takes("graph input", lambda one: one in graph.inputs))
        if any(self._can_go(one) for one in asked):
            takes = Takes("graph input that can go", lambda one: one in graph.inputs and self._can_go(one))
            values = work.find.tensors(self.input, takes)
        stay = [one.name or "" for one in asked if one not in values]
        if stay:
            work.notes.append(
                f"{', '.join(stay)}: still graph input{'s' * (len(stay) > 1)}, read and without a default"
            )
        return "; ".join([self._drop(work, value) for value in values])

    def _can_go(self, value: ir.Value) -> bool:
        return self.value is not None or value.const_value is not None or not _is_used(value)

    def _drop(self, work: Work, value: ir.Value) -> str:
        graph = work.model.graph
        if value not in graph.inputs:
            near = tensor_paths.near(value.name or "", [one.name or "" for one in graph.inputs])
            raise problem(
                "edit/no-match",
                f"{value.name!r} is not a graph input",
                why=f"the inputs are {', '.join(one.name or '' for one in graph.inputs)}",
                fix=f"the nearest: {', '.join(near)}" if near else "name one of them",
            )
        name = value.name or ""
        used = _is_used(value)
        default = value.const_value
        if used and self.value is None and default is None:
            raise problem(
                "edit/input-needed",
                f"the input {name!r} is read by {_readers(value)}",
                why="without a value nothing is there to read",
                fix=f'give a value that takes its place: value = {_example(value)}, or value = {{ file = "x.npy" }}',
            )
        tensor = self._tensor(value) if self.value is not None else default
        graph.inputs.remove(value)
        original = work.inputs.pop(name, None)
        if tensor is not None and used:
            tensor.name = name
            was = value.shape if value.shape is not None else ir.Shape(dims(tensor))
            value.const_value, value.type, value.shape = tensor, ir.TensorType(tensor.dtype), ir.Shape(dims(tensor))
            graph.initializers[name] = value
            work.reshape(*(one for use in value.uses() for one in use.node.outputs))
            pairs = zip(was, dims(tensor), strict=True)
            work.fix_symbols({dim.value: size for dim, size in pairs if isinstance(dim, ir.SymbolicDim) and dim.value})
            _allow_constants(work)
        elif name in graph.initializers:
            del graph.initializers[name]
        if original is not None:
            work.adapt_reference.append(lambda model: _fixed(model, original, tensor))
        return f"{name}{f', fixed to a constant of {list(dims(tensor))}' if tensor is not None and used else ''}"

    def _tensor(self, value: ir.Value) -> ir.TensorProtocol:
        name = value.name or ""
        if constant_tensors.is_array(self.value):
            made = constant_tensors.of_array(self.value, f"the value of {name}", "")
        else:
            made = constant_tensors.of_python(self.value, value.dtype or ir.DataType.FLOAT, f"the value of {name}", "")
            shape = value.shape
            if not isinstance(self.value, list | tuple) and shape is not None and len(shape):
                if not shape.is_static():
                    raise problem(
                        "edit/shape",
                        f"{name} has symbolic dimensions, and one number has no shape",
                        where=f"{name}: {shape}",
                        fix="give an array of the shape that the input shall have",
                    )
                made = ir.tensor(np.broadcast_to(made.numpy(), shape.numpy()).copy(), dtype=made.dtype)
        if value.dtype is not None and made.dtype != value.dtype:
            raise problem(
                "edit/dtype",
                f"{name} is of {value.dtype.name.lower()}, the value of {made.dtype.name.lower()}",
                fix=f'convert the array: value.astype("{value.dtype.numpy().name}")',
            )
        sizes = list(value.shape) if value.shape is not None else list(dims(made))
        if len(sizes) != len(dims(made)) or any(
            isinstance(a, int) and a != b for a, b in zip(sizes, dims(made), strict=True)
        ):
            raise problem(
                "edit/shape",
                f"{name} has the shape {value.shape}, the value has {list(dims(made))}",
                fix="give a value of the input's shape",
            )
        return made


def _is_used(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


def _allow_constants(work: Work) -> None:
    """Raises the IR version if the old one requires constants to be graph inputs."""
    if not walk.has_own_initializers(work.model):
        was, work.model.ir_version = work.model.ir_version, walk.FIRST_WITH_CONSTANTS
        work.notes.append(
            f"IR version {was} → {work.model.ir_version}: before version 4 a constant has to be a graph input too"
        )


_SHOWN = 3
"""Limits the readers that an error names. A choice: one line."""


def _readers(value: ir.Value) -> str:
    names = dict.fromkeys(walk.node_label(use.node) for use in value.uses())
    return first_few(names, _SHOWN) if names else "no node, and is a graph output"


def _example(value: ir.Value) -> str:
    """Returns an example number of the input's dtype."""
    if value.dtype == ir.DataType.BOOL:
        return "true"
    return "1" if value.dtype is not None and value.dtype.is_integer() else "1.0"


def _fixed(model: ir.Model, name: str, tensor: ir.TensorProtocol | None) -> ir.Model:
    """Returns the original with the same value in place of the input."""
    value = next(one for one in model.graph.inputs if one.name == name)
    model.graph.inputs.remove(value)
    model.graph.initializers.pop(name, None)
    if tensor is not None:
        value.const_value, value.type, value.shape = tensor, ir.TensorType(tensor.dtype), ir.Shape(dims(tensor))
        model.graph.initializers[name] = value
    return model
