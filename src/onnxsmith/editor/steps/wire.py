"""Defines `wire`, which lets a node read another tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work, depending
from onnxsmith.editor.node_placement import operand, operand_index
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import walk


@dataclass(frozen=True)
class Wire(Step):
    """Lets `node` read `tensor` as its operand `input` (a number from 0, or a name in the schema, such as "B").
    `tensor` is the name of a tensor, a number, list or array for a constant, or "" to leave an optional operand out.
    With `same` the outputs must keep their numbers."""

    first = ("node", "input", "tensor")

    node: Any
    input: int | str
    tensor: Any
    same: bool = False

    def apply(self, work: Work) -> str:
        node = work.find.node(self.node)
        index = operand_index(work, node, self.input)
        value = operand(work, node, index, self.tensor)
        if value is not None and value in depending(work.model, set(node.outputs)):
            raise problem(
                "edit/cycle",
                f"{walk.node_label(node)} would depend on its own result",
                why=f"{value.name!r} is computed from it",
                fix="choose a tensor that does not depend on the node",
            )
        while len(node.inputs) <= index:
            node.resize_inputs(len(node.inputs) + 1)
        old = node.inputs[index]
        node.replace_input_with(index, value)
        if not self.same:
            work.change(*node.outputs)
        else:
            work.reshape(*node.outputs)
        names = (one.name if one is not None else "nothing" for one in (old, value))
        return f"{walk.node_label(node)}, operand {self.input}: {' → '.join(str(name) for name in names)}"
