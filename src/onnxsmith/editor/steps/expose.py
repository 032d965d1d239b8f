"""Defines `expose`, which makes tensors graph outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work, dims
from onnxsmith.editor.node_selectors import Takes
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import tensor_paths
from onnxsmith.graph.surgery.exposing import expose


@dataclass(frozen=True)
class Expose(Step):
    """Makes `tensor`, or all selected tensors, graph outputs with their dtype and shape. `name` names the output of a
    single tensor. A tensor of a branch is exposed too. For a tensor of a body, the output has its value of each run, as
    a stack or a list."""

    first = ("tensor",)

    tensor: Any
    name: str | None = None

    def apply(self, work: Work) -> str:
        values = self._values(work)
        if self.name is not None and len(values) > 1:
            raise problem(
                "edit/many-matches",
                f"one name cannot be given to {len(values)} tensors",
                fix="select one tensor, or leave name out",
            )
        work.infer()
        outer = [value for value in values if _is_outer(work, value)]
        done = [self._expose(work, value) for value in outer]
        inner = [value for value in values if value not in outer]
        return ", ".join([*done, *(self._bring_out(work, inner) if inner else [])])

    def _values(self, work: Work) -> list[ir.Value]:
        """Returns the selected tensors. A name with `*` skips tensors that are already graph outputs, and a note lists
        them."""
        graph = work.model.graph
        if self.name is not None:
            return work.find.tensors(self.tensor)
        takes = Takes("tensor that is not a graph output", lambda value: value not in graph.outputs)
        values = work.find.tensors(self.tensor, takes)
        skipped = [value.name or "" for value in work.find.tensors(self.tensor) if value not in values]
        if skipped:
            work.notes.append(
                f"{', '.join(skipped)}: {'a graph output' if len(skipped) == 1 else 'graph outputs'} already"
            )
        outputs = [value.name or "" for value in values if value in graph.outputs]
        if outputs:
            rest = [value.name or "" for value in values if value not in graph.outputs]
            raise problem(
                "edit/is-output",
                f"{outputs[0]!r} is a graph output already",
                fix=f"leave it out: {', '.join(rest)}" if rest else "leave the step out",
            )
        return values

    def _expose(self, work: Work, value: ir.Value) -> str:
        graph, name = work.model.graph, value.name or ""
        if value.is_graph_input() or value.is_initializer() or self.name not in (None, name):
            node = ir.node("Identity", [value])
            graph.append(node)
            copy = node.outputs[0]
            copy.name = self._free(work, self.name or f"{name}_output")
            copy.type, copy.shape = value.type, value.shape
            if copy.type is None and value.const_value is not None:
                copy.type, copy.shape = ir.TensorType(value.const_value.dtype), ir.Shape(dims(value.const_value))
            value = copy
        graph.outputs.append(value)
        work.declare(value)
        work.outputs[value.name or ""] = None
        return f"{name}{f' as {value.name}' if value.name != name else ''}"

    def _free(self, work: Work, name: str) -> str:
        if self.name is None:
            return work.names.free(name)
        if name in {place.value.name for place in tensor_paths.places(work.model)}:
            raise problem("edit/name-taken", f"another tensor is called {name!r}", fix="choose a name that is free")
        return name

    def _bring_out(self, work: Work, inner: list[ir.Value]) -> list[str]:
        places = [place.name for place in tensor_paths.places(work.model) if place.value in inner]
        exposed = expose(work.model, places)
        if exposed.refused:
            name, why = next(iter(exposed.refused.items()))
            raise problem(
                "edit/not-exposable",
                f"{name!r} cannot be brought out of its body",
                why=why,
                fix="expose the result of the body instead",
            )
        work.become(exposed.model)
        by_name = {value.name: value for value in work.model.graph.outputs}
        done = []
        for name, outlet in exposed.outlets.items():
            value = by_name[outlet.output]
            if self.name is not None:
                value.name = self._free(work, self.name)
            work.outputs[value.name or ""] = None
            what = "a stack with one row for each run" if outlet.axes else "a list with one tensor for each run"
            done.append(f"{name} as {value.name}, {what}" if outlet.repeated else f"{name} as {value.name}")
        return done


def _is_outer(work: Work, value: ir.Value) -> bool:
    graph = work.model.graph
    node = value.producer()
    return (node is not None and node.graph is graph) or value in graph.inputs or value in graph.initializers.values()
