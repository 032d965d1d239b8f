"""Defines `constant`, which gives a constant another value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work, dims
from onnxsmith.editor.node_selectors import Takes
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import constant_tensors


@dataclass(frozen=True)
class Constant(Step):
    """Gives the constant `tensor` (an initializer, or the result of a Constant node) a new `value`: a number, a list or
    an array. Numbers and lists take the constant's dtype, and a number fills its shape. An array of another dtype is
    refused, because readers of the constant expect its dtype."""

    first = ("tensor", "value")

    tensor: Any
    value: Any

    def apply(self, work: Work) -> str:
        value = work.find.tensor(self.tensor, Takes("constant", _is_constant))
        held = ir.convenience.get_const_tensor(value)
        if held is None:
            raise problem(
                "edit/not-constant",
                f"{value.name!r} is not a constant",
                why="it is computed"
                if value.producer() is not None
                else "it is an input, which the caller or the loop gives",
                fix="select an initializer: `onnxsmith inspect MODEL --weights` lists them",
            )
        made = self._made(held, value.name or "")
        made.name = value.name
        node = value.producer()
        if node is None:
            value.const_value = made
        else:
            node.attributes.clear()
            node.attributes.add(ir.AttrTensor("value", made))
            value.const_value = None
        value.type, value.shape = ir.TensorType(made.dtype), ir.Shape(dims(made))
        work.change(value)
        if value.is_graph_input():
            work.notes.append(
                f"{value.name} is a graph input too: a caller that gives it another value replaces this one"
            )
        was = "" if dims(held) == dims(made) else f", shape {list(dims(held))} → {list(dims(made))}"
        return f"{value.name}{was}"

    def _made(self, held: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
        if constant_tensors.is_array(self.value):
            made = constant_tensors.of_array(self.value, f"the value of {name}", "")
            if made.dtype != held.dtype:
                raise problem(
                    "edit/dtype",
                    f"{name} is of {held.dtype.name.lower()}, the array is of {made.dtype.name.lower()}",
                    why="the nodes that read the constant expect its dtype",
                    fix=f'convert the array: value.astype("{held.dtype.numpy().name}")',
                )
            return made
        made = constant_tensors.of_python(self.value, held.dtype, f"the value of {name}", "")
        if not isinstance(self.value, list | tuple) and dims(held):
            full = np.broadcast_to(made.numpy(), dims(held)).copy()
            return ir.tensor(full, dtype=held.dtype)
        return made


def _is_constant(value: ir.Value) -> bool:
    return ir.convenience.get_const_tensor(value) is not None
