"""Defines `drop_output`, which removes graph outputs, and the nodes that only these outputs needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnxsmith.base.problem import problem
from onnxsmith.base.words import several
from onnxsmith.editor.dead_node_removal import remove_unneeded
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.node_selectors import Takes
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import tensor_paths


@dataclass(frozen=True)
class DropOutput(Step):
    """Removes the graph outputs `output` (a name, a name with `*`, or a list of names) and the nodes that only they
    needed. Graph inputs stay."""

    first = ("output",)

    output: Any

    def apply(self, work: Work) -> str:
        graph = work.model.graph
        wanted = work.find.tensors(self.output, Takes("graph output", lambda value: value in graph.outputs))
        for value in wanted:
            if value not in graph.outputs:
                near = tensor_paths.near(value.name or "", [one.name or "" for one in graph.outputs])
                raise problem(
                    "edit/no-match",
                    f"{value.name!r} is not a graph output",
                    why=f"the outputs are {', '.join(one.name or '' for one in graph.outputs)}",
                    fix=f"the nearest: {', '.join(near)}" if near else "name one of them",
                )
        left = [value for value in graph.outputs if value not in wanted]
        if not left:
            *rest, last = [f'"{value.name}"' for value in wanted]
            raise problem(
                "edit/no-outputs",
                "the model would have no output left",
                where=", ".join(value.name or "" for value in wanted),
                why="a model gives at least one output",
                fix=f"keep one, {last} for example: output = [{', '.join(rest)}]"
                if rest
                else "make another tensor an output first, with the step expose",
            )
        graph.outputs.clear()
        graph.outputs.extend(left)
        for value in wanted:
            work.outputs.pop(value.name or "", None)
        gone = remove_unneeded(work.model)
        return f"{', '.join(value.name or '' for value in wanted)}, with {several(gone, 'node')}"
