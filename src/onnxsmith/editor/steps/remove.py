"""Defines `remove`, which removes nodes, and connects their readers to one of their operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import first_few
from onnxsmith.editor.edited_model import Work, graph_of
from onnxsmith.editor.following_dtypes import Following
from onnxsmith.editor.node_placement import operand_index, operators
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.value_replacement import can_be_output
from onnxsmith.graph.surgery.node_insertion import release

_SAME = frozenset({"Identity"})
"""Lists the operators whose removal changes no number."""


@dataclass(frozen=True)
class Remove(Step):
    """Removes the selected `node`, or all selected nodes. Readers of the result read the operand `keep` instead (a
    number from 0, or a name in the schema). `keep` may be left out if only one operand is not a constant, or if the
    node has one operand. A graph output keeps its name. Constants that nothing reads any more are removed too. If the
    operand has another dtype, as for a Cast, the nodes behind compute in that dtype, as far as their operators allow.
    Graph outputs keep their dtype, so a Cast back has to be among the removed nodes. With `same` the outputs must keep
    their numbers."""

    first = ("node",)

    node: Any
    keep: int | str | None = None
    same: bool = False

    def apply(self, work: Work) -> str:
        nodes = work.find.nodes(self.node)
        labels = [f"{walk.node_label(node)} ({walk.op_name(node)})" for node in nodes]
        for node in nodes:
            self._refuse_read(node)
        stands = self._stand_ins(work, nodes)
        self._follow_dtypes(work, nodes, stands)
        for node in nodes:
            self._remove(work, node, stands)
        return first_few(labels, 3)

    def _refuse_read(self, node: ir.Node) -> None:
        used = _used(node)
        if len(used) > 1 or (used and used[0] is not node.outputs[0]):
            raise problem(
                "edit/several-results",
                f"{walk.node_label(node)} cannot be removed: more than its first result is read",
                why=f"{', '.join(value.name or '' for value in used)} are read, and one operand cannot stand for all",
                fix="rewire the readers first with the step wire",
            )

    def _stand_ins(self, work: Work, nodes: list[ir.Node]) -> dict[ir.Value, ir.Value]:
        """Returns the tensor that replaces each node's result once all the nodes are gone."""
        operands = {node.outputs[0]: self._operand(work, node) for node in nodes if _used(node)}

        def last(value: ir.Value) -> ir.Value:
            while value in operands:
                value = operands[value]
            return value

        return {value: last(value) for value in operands}

    def _follow_dtypes(self, work: Work, nodes: list[ir.Node], stands: dict[ir.Value, ir.Value]) -> None:
        """Lets the nodes behind take another dtype, and notes this in the report."""
        if any(value.dtype is None or value.dtype != new.dtype for value, new in stands.items()):
            work.infer()
        following = Following(work, dict.fromkeys(nodes), stands)
        following.run()
        said = following.said()
        if said:
            work.notes.append(said)
            work.reshape(*following.new)

    def _remove(self, work: Work, node: ir.Node, stands: dict[ir.Value, ir.Value]) -> None:
        graph = node.graph
        assert graph is not None
        value = next((one for one in _used(node) if one in stands), None)
        if value is not None:
            new = stands[value]
            same = self.same or (node.op_type in _SAME and not node.domain)
            readers = [use.node for use in value.uses()]
            # The operand keeps its numbers; those of its new readers change.
            if not same:
                work.change(*(one for reader in readers for one in reader.outputs))
            else:
                work.reshape(*(one for reader in readers for one in reader.outputs))
            self._as_output(work, node, value, new, same=same)
            value.replace_all_uses_with(new)  # the readers that are left
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
        read = [one for one in dict.fromkeys(node.inputs) if one is not None]
        if self.keep is None and len(read) == 1:
            return read[0]
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
        if same and can_be_output(new, inner):
            value.replace_all_uses_with(new, replace_graph_outputs=True)
            value.name, new.name = work.names.free(f"{value.name}_removed"), value.name
            new.type, new.shape = new.type or value.type, new.shape if new.shape is not None else value.shape
            work.declare(new)  # an output has a type in the file
            return
        work.notes.append(
            f"an Identity gives the output {value.name}, so that {new.name} and the output keep their names"
        )
        made = operators(work, inner, None, f"removal of {walk.node_label(node)}").Identity(new).value
        made.type, made.shape, name = new.type, new.shape, value.name
        for index, one in enumerate(inner.outputs):
            if one is value:
                inner.outputs[index] = made
        value.name = work.names.free(f"{name}_removed")
        made.name = name
        if not same:
            work.change(made)


def _used(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.outputs if value.uses() or value.is_graph_output()]
