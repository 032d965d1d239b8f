"""`extract`: cuts out the part of the model between tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.editing.steps.base import Step
from onnxsmith.editing.unneeded import remove_unneeded
from onnxsmith.editing.work import Work
from onnxsmith.model.graph import walk
from onnxsmith.model.surgery.cutting import cut
from onnxsmith.model.surgery.joining import joined
from onnxsmith.problem import problem
from onnxsmith.words import several


@dataclass(frozen=True)
class Extract(Step):
    """Keeps the nodes that compute the tensors `to` (by default the graph outputs) from the tensors `from`. Without
    `from` the graph inputs that are needed stay inputs. The part is verified in its place: the original, with the part
    behind the tensors `from`, must give the same tensors `to`."""

    first = ("from_", "to")

    from_: Any = None
    to: Any = None

    def apply(self, work: Work) -> str:
        graph = work.model.graph
        starts = work.find.tensors(self.from_) if self.from_ is not None else []
        ends = work.find.tensors(self.to) if self.to is not None else list(graph.outputs)
        for value in (*starts, *ends):
            _refuse_inner(work, value)
        work.infer()
        whole = work.model
        names = [value.name or "" for value in starts if value.producer() is not None]
        same = [value.name or "" for value in ends if value in starts or value.producer() is None]
        if same:
            raise problem(
                "edit/empty-part",
                f"no node computes {', '.join(same)} in the part",
                why="the tensor is a graph input, a constant, or one of `from`",
                fix="choose a tensor behind it",
            )
        made = cut(whole, names, [value.name or "" for value in ends])
        part = made.model
        self._refuse_undefined(part, starts, made.inputs)
        unused = [
            value.name for value in starts if value.name not in {*made.inputs, *(one.name for one in part.graph.inputs)}
        ]
        if unused:
            raise problem(
                "edit/unused-cut",
                f"{', '.join(map(str, unused))} has no influence on {', '.join(value.name or '' for value in ends)}",
                why="no path of nodes leads from the one to the other",
                fix="leave it out of `from`",
            )
        by_port = {port: name for name, port in made.inputs.items()}
        for port in part.graph.inputs:
            port.name = by_port.get(port.name or "", port.name)
        wires = [port.name or "" for port in part.graph.inputs]
        old_outputs = {value.name or "": work.original.get(value) for value in ends}
        work.become(part)
        work.inputs = dict.fromkeys(wires)
        work.outputs = old_outputs
        outputs = [value.name or "" for value in part.graph.outputs]
        work.adapt_candidate.append(lambda candidate: _in_place(whole, candidate, wires, outputs))
        count = several(walk.count_nodes(part), "node")
        return f"{count} from {', '.join(wires) or 'constants'} to {', '.join(outputs)}"

    def _refuse_undefined(self, part: ir.Model, starts: list[ir.Value], found: dict[str, str]) -> None:
        """Raises if the part still needs a graph input that is not one of `from`."""
        if self.from_ is None:
            return
        allowed = {*found.values(), *(value.name for value in starts)}
        missing = [
            value.name or ""
            for value in part.graph.inputs
            if value.name not in allowed and value.const_value is None and value.name not in part.graph.initializers
        ]
        if missing:
            listed = " ".join(f"--from {name}" for name in [*(value.name or "" for value in starts), *missing])
            raise problem(
                "edit/undefined",
                f"the part also needs the graph input {', '.join(missing)}",
                why="a path of nodes leads from it to the part's outputs without passing a tensor of `from`",
                fix=f"{listed}, in Python a list of the names",
            )


def _refuse_inner(work: Work, value: ir.Value) -> None:
    node = value.producer()
    graph = work.model.graph
    if (node is not None and node.graph is graph) or value in graph.inputs or value in graph.initializers.values():
        return
    raise problem(
        "edit/out-of-scope",
        f"{value.name!r} is inside a branch or a body",
        why="a part is cut out of one graph",
        fix="extract the node that holds the body, or `onnxsmith expose MODEL TENSOR` brings the tensor out",
    )


def _in_place(whole: ir.Model, part: ir.Model, wires: list[str], outputs: list[str]) -> ir.Model:
    """The original in which the part computes its outputs, from the tensors that it starts at."""
    ports = [port.name or "" for port in part.graph.inputs]
    grafted = joined(whole, part, dict(zip(ports, wires, strict=True)))
    kept = list(grafted.graph.outputs)[len(whole.graph.outputs) :]
    grafted.graph.outputs.clear()
    old = {value.name or "": value for node in grafted.graph for value in node.outputs}
    for name, value in zip(outputs, kept, strict=True):
        if name in old and old[name] is not value:
            old[name].name = f"{name}.whole"
        value.name = name
    grafted.graph.outputs.extend(kept)
    remove_unneeded(grafted)
    return grafted
