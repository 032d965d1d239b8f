"""`remove`: takes nodes out and joins their readers to one of their operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.editing.placing import operand_index, operators
from onnxsmith.editing.steps.base import Step
from onnxsmith.editing.work import Work, graph_of
from onnxsmith.model.graph import captures, walk
from onnxsmith.model.surgery.inserting import release
from onnxsmith.problem import problem

_SAME = frozenset({"Identity"})
"""Operators whose removal changes no number."""


@dataclass(frozen=True)
class Remove(Step):
    """Removes the selected `node`, or all selected nodes. What read the result reads the operand `keep` instead (a
    number from 0, or a name in the schema); `keep` may be left out if only one operand is not a constant. A graph
    output keeps its name. Constants that nothing reads any more go along. With `same` the outputs must keep their
    numbers."""

    first = ("node",)

    node: Any
    keep: int | str | None = None
    same: bool = False

    def apply(self, work: Work) -> str:
        nodes = work.find.nodes(self.node)
        labels = [f"{walk.node_label(node)} ({walk.op_name(node)})" for node in nodes]
        for node in nodes:
            self._remove(work, node)
        return ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")

    def _remove(self, work: Work, node: ir.Node) -> None:
        graph = node.graph
        assert graph is not None
        used = [value for value in node.outputs if value.uses() or value.is_graph_output()]
        if len(used) > 1 or (used and used[0] is not node.outputs[0]):
            raise problem(
                "edit/several-results",
                f"{walk.node_label(node)} cannot be removed: more than its first result is read",
                why=f"{', '.join(value.name or '' for value in used)} are read, and one operand cannot stand for all",
                fix="rewire the readers first with the step wire",
            )
        if used:
            value, new = used[0], self._operand(work, node)
            _refuse_other_type(work, node, value, new)
            same = self.same or (node.op_type in _SAME and not node.domain)
            readers = [use.node for use in value.uses()]
            if not same:
                work.change(*(one for reader in readers for one in reader.outputs))
            else:
                work.reshape(*(one for reader in readers for one in reader.outputs))
            self._as_output(work, node, value, new, same=same)
            value.replace_all_uses_with(new)
        operands = [one for one in dict.fromkeys(node.inputs) if one is not None]
        captures.release(node)
        graph.remove(node, safe=True)
        for one in operands:
            release(one)

    def _operand(self, work: Work, node: ir.Node) -> ir.Value:
        if self.keep is not None:
            index = operand_index(work, node, self.keep)
            found = node.inputs[index] if index < len(node.inputs) else None
            if found is not None:
                return found
        computed = [one for one in node.inputs if one is not None and ir.convenience.get_const_tensor(one) is None]
        if self.keep is None and len(dict.fromkeys(computed)) == 1:
            return computed[0]
        raise problem(
            "edit/no-operand",
            f"which operand of {walk.node_label(node)} shall stand for its result?",
            why=f"it reads {', '.join(one.name or '' for one in computed) or 'constants only'}",
            fix="add keep = 0, the number of the operand",
        )

    def _as_output(self, work: Work, node: ir.Node, value: ir.Value, new: ir.Value, *, same: bool) -> None:
        if not value.is_graph_output():
            return
        inner = graph_of(node)
        made = operators(work, inner, None, f"removal of {walk.node_label(node)}").Identity(new).value
        made.type, made.shape, name = new.type, new.shape, value.name
        for index, one in enumerate(inner.outputs):
            if one is value:
                inner.outputs[index] = made
        value.name = work.names.free(f"{name}_removed")
        made.name = name
        if not same:
            work.change(made)


def _refuse_other_type(work: Work, node: ir.Node, value: ir.Value, new: ir.Value) -> None:
    if value.dtype is None or new.dtype is None:
        work.infer()
    if value.dtype is not None and new.dtype is not None and value.dtype != new.dtype:
        raise problem(
            "edit/dtype",
            f"{walk.node_label(node)} cannot be removed: its result is of {value.dtype.name.lower()}, "
            f"the operand of {new.dtype.name.lower()}",
            why="an operand of another dtype breaks the nodes that read it",
            fix="keep an operand of the same dtype, or change the dtype with the step cast",
        )
