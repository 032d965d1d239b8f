"""Defines `insert`, which puts a node behind a tensor, or in front of a node's operand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.edited_model import Work, graph_of
from onnxsmith.editor.node_placement import home_of, node_after, operand_index, operators, readers
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.structure import walk

HERE = "$"


@dataclass(frozen=True)
class Insert(Step):
    """Inserts a node of operator `op` (`Clip`, `com.microsoft::Gelu`) behind the tensor `after`, or in front of the
    operand `input` (0) of the node `before`. Behind a tensor, all its readers read the first result, and a graph output
    keeps its name: the first result gets it. In front of an operand, only the node `before` reads the result.

    `operands` are names of tensors, numbers, lists and arrays for constants, and "" for a left-out operand; "$" is the
    tensor itself. Without "$" the tensor is the first operand, followed by `operands`. `attributes` are checked against
    the schema. `name` names the node, `outputs` its results. With `same` the outputs must keep their numbers.
    """

    first = ("op",)

    op: str
    after: Any = None
    before: Any = None
    input: int | str = 0
    operands: list[Any] | tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    name: str | None = None
    outputs: Any = None
    same: bool = False

    def apply(self, work: Work) -> str:
        if (self.after is None) == (self.before is None):
            raise problem(
                "edit/step-argument",
                "insert needs one of after and before",
                why="`after` is a tensor, `before` a node",
                fix='write after = "relu_1_out"',
            )
        if self.after is not None:
            value = work.find.tensor(self.after)
            graph, users = home_of(work, value), readers(value)
            try:
                made = self._made(work, value, graph, node_after(graph, value))
            except OnnxsmithError as error:
                raise _behind_the_adapter(error, value) from error.__cause__
            for node, index in users:
                node.replace_input_with(index, made)
            self._as_output(work, graph, value, made)
            place = f"behind {self.after if isinstance(self.after, str) else value.name}"
        else:
            node = work.find.node(self.before)
            index = operand_index(work, node, self.input)
            read = node.inputs[index] if index < len(node.inputs) else None
            if read is None or node.graph is None:
                raise problem(
                    "edit/no-operand",
                    f"{walk.node_label(node)} has no tensor as operand {self.input!r}",
                    fix="choose an operand that is there",
                )
            made = self._made(work, read, graph_of(node), node)
            node.replace_input_with(index, made)
            place = f"in front of {walk.node_label(node)}"
        if not self.same:
            work.change(made)
        return f"{self.op} {place}"

    def _made(self, work: Work, value: ir.Value, graph: ir.Graph, before: ir.Node | None) -> ir.Value:
        make = operators(work, graph, before, f"{self.op} behind {value.name}")
        given = [make.tensor(value) if _is_here(one) else self._operand(work, one) for one in self.operands]
        if not any(_is_here(one) for one in self.operands):
            given = [make.tensor(value), *given]
        made = make.node(self.op, *given, name=self.name, outputs=self._names(work, value), **self.attributes)
        first = made[0] if isinstance(made, tuple) else made
        if not isinstance(first, Tensor):
            raise problem("edit/step-argument", f"the first result of {self.op} is left out", fix="name it in outputs")
        return first.value

    def _names(self, work: Work, value: ir.Value) -> Any:
        """Returns the names of the results. The first name may be that of the graph output that the result replaces."""
        if self.after is None or not value.is_graph_output() or value.is_graph_input():
            return self.outputs
        if self.outputs == value.name:
            return None
        if isinstance(self.outputs, list | tuple) and self.outputs and self.outputs[0] == value.name:
            return [work.names.free(f"{value.name}_result"), *self.outputs[1:]]
        return self.outputs

    def _operand(self, work: Work, one: Any) -> Any:
        if isinstance(one, str):
            return work.find.tensor(one) if one else None
        return one.value if hasattr(one, "value") and not isinstance(one, ir.Value) else one

    def _as_output(self, work: Work, graph: ir.Graph, value: ir.Value, made: ir.Value) -> None:
        """Makes the result the graph output in place of the tensor, under the tensor's name."""
        if not any(one is value for one in graph.outputs):
            return
        for index, one in enumerate(graph.outputs):
            if one is value:
                graph.outputs[index] = made
        name = value.name or ""
        if value.is_graph_input():
            if graph is work.model.graph:  # one name cannot be an input and another value's
                work.outputs[made.name or ""] = work.outputs.pop(name, None)
            return
        given = self.outputs[0] if isinstance(self.outputs, list | tuple) else self.outputs
        if isinstance(given, str) and given != name:
            work.notes.append(f"the first result is called {name}, not {given}: a graph output keeps its name")
        value.name = work.names.free(f"{name}_before_{self.op.rpartition(':')[2].lower()}")
        made.name = name


def _is_here(one: Any) -> bool:
    return isinstance(one, str) and one == HERE


def _behind_the_adapter(error: OnnxsmithError, value: ir.Value) -> OnnxsmithError:
    """Returns the error. If only a Cast or Transpose of an earlier step reads the input, the fix names the tensor
    behind this node."""
    uses = list(value.uses())
    node = uses[0].node if len(uses) == 1 else None
    if not value.is_graph_input() or node is None or node.op_type not in ("Cast", "Transpose"):
        return error
    name = node.outputs[0].name
    fix = f'{value.name} is only read by a {node.op_type}; to insert behind that: after = "{name}"'
    return OnnxsmithError(replace(error.problem, fix=fix))
