"""Defines `set`, which sets attributes of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onnxsmith.base.words import first_few
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import attributes as checked
from onnxsmith.graph.structure import schema, walk


@dataclass(frozen=True)
class Set(Step):
    """Sets `attributes` of the selected `node`, or of all selected nodes: `{ axis = 1 }`. An empty text removes an
    attribute, so that its default applies. With `same` the outputs must keep their numbers."""

    first = ("node", "attributes")

    node: Any
    attributes: Mapping[str, Any] = field(default_factory=dict)
    same: bool = False

    def apply(self, work: Work) -> str:
        nodes = work.find.nodes(self.node)
        for node in nodes:
            self._set(work, node)
        listed = ", ".join(
            f"{name} = {'removed' if _gone(value) else value}" for name, value in self.attributes.items()
        )
        return f"{_labels(nodes)}: {listed}"

    def _set(self, work: Work, node: ir.Node) -> None:
        version = work.opsets(node).get(node.domain, 1)
        known = schema.find(node.op_type, node.domain, version)
        kept = {name: one for name, one in node.attributes.items() if name not in self.attributes}
        new = {name: value for name, value in self.attributes.items() if not _gone(value)}
        # Without a schema, the old attribute tells the type of its new value.
        if known is None:
            guessed = {
                name: ir.Attr(name, node.attributes[name].type, value) if name in node.attributes else value
                for name, value in new.items()
            }
            made = checked.made(walk.op_name(node), None, guessed, walk.node_label(node))
        else:
            own = {name: one for name, one in kept.items() if name in known.attributes and not one.is_ref()}
            odd = [one for name, one in kept.items() if name not in own]
            made = [*checked.made(walk.op_name(node), known, {**own, **new}, walk.node_label(node)), *odd]
            kept = {}
        node.attributes.clear()
        for one in (*kept.values(), *made):
            node.attributes.add(one)
        if not self.same:
            work.change(*node.outputs)
        else:
            work.reshape(*node.outputs)


def _gone(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value)


def _labels(nodes: list[ir.Node]) -> str:
    return first_few([walk.node_label(node) for node in nodes], 3)
