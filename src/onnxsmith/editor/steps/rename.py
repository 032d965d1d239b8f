"""Defines `rename`, which gives a tensor, a node or a symbolic dimension another name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.structure import tensor_paths, walk
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery.names import rename_ports, rename_symbols


@dataclass(frozen=True)
class Rename(Step):
    """Renames one thing to `to`: `tensor` (graph inputs and outputs are tensors), `node`, or the symbolic dimension
    `dim`. The numbers stay the same."""

    first = ("tensor", "to")

    tensor: Any = None
    to: str = ""
    node: Any = None
    dim: str | None = None

    def apply(self, work: Work) -> str:
        chosen = [name for name in ("tensor", "node", "dim") if getattr(self, name) is not None]
        if len(chosen) != 1 or not isinstance(self.to, str) or not self.to:
            raise problem(
                "edit/step-argument",
                "rename needs one of tensor, node and dim, and a new name in `to`",
                why=f"it was given {', '.join(chosen) or 'none of them'} and to = {self.to!r}",
                fix='write tensor = "x", to = "image"',
            )
        return getattr(self, f"_{chosen[0]}")(work)  # type: ignore[no-any-return]

    def _node(self, work: Work) -> str:
        node = work.find.node(self.node)
        if any(one.name == self.to and one is not node for one in walk.all_nodes(work.model)):
            raise problem("edit/name-taken", f"another node is called {self.to!r}", fix="choose a name that is free")
        old, node.name = walk.node_label(node), self.to
        return f"node {old} → {self.to}"

    def _tensor(self, work: Work) -> str:
        value = work.find.tensor(self.tensor)
        old = value.name or ""
        taken = [place for place in tensor_paths.places(work.model) if place.value.name == self.to]
        if taken and taken[0].value is not value:
            raise problem(
                "edit/name-taken",
                f"another tensor is called {self.to!r}",
                why=_said(taken[0]),
                fix="choose a name that is free, or rename the other tensor first",
            )
        graph = work.model.graph
        if value.is_graph_output() and value.is_graph_input() and value in graph.inputs:
            # One value is both: the input is renamed, and the output keeps its name by an Identity.
            at = [index for index, one in enumerate(graph.outputs) if one is value]
            rename_ports(
                work.model,
                [self.to if one is value else one.name or "" for one in graph.inputs],
                [one.name or "" for one in graph.outputs],
            )
            assert all(graph.outputs[index].name == old for index in at)
            work.inputs[self.to] = work.inputs.pop(old, None)
            return f"input {old} → {self.to}; the output keeps its name"
        value.name = self.to
        for ports, held in ((work.inputs, graph.inputs), (work.outputs, graph.outputs)):
            if value in held:
                ports[self.to] = ports.pop(old, None)
        return f"tensor {old} → {self.to}"

    def _dim(self, work: Work) -> str:
        assert self.dim is not None
        known = symbols(signature(work.model))
        if self.dim not in known:
            near = tensor_paths.near(self.dim, list(known))
            raise problem(
                "edit/no-match",
                f"no symbolic dimension is called {self.dim!r}",
                why=f"the model has {', '.join(known) or 'none'}",
                fix=f"write {near[0]!r}" if near else "`onnxsmith inspect MODEL` shows them",
            )
        if self.to in known:
            raise problem(
                "edit/name-taken",
                f"another dimension is called {self.to!r}",
                why="two dimensions of one name must be equal",
                fix="choose a name that is free",
            )
        rename_symbols(work.model, {self.dim: self.to})
        return f"dimension {self.dim} → {self.to}"


def _said(place: tensor_paths.Place) -> str:
    """Returns a description of a tensor's role in the model."""
    value, node = place.value, place.value.producer()
    made = "an initializer"
    if node is not None:
        made = f"the result of {f'{node.name} ({walk.op_name(node)})' if node.name else walk.op_name(node)}"
    if value.is_graph_input():
        made = "a graph input" if not place.bodies else "an input"
    where = f" of {'/'.join(place.path)}" if place.bodies else ""
    output = ", and an output of it" if place.bodies else ", and a graph output"
    return f"it is {made}{where}" + (output if value.is_graph_output() else "")
