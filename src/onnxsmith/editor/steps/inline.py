"""Defines `inline`, which replaces calls of local functions by their bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import several
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import tensor_paths, walk
from onnxsmith.graph.surgery.inlining import inlined


@dataclass(frozen=True)
class Inline(Step):
    """Replaces the calls of the local function `function` (`domain::Name`), or of all functions, by their bodies. The
    outputs keep their numbers. If the file declares shapes of intermediate tensors, those of the new tensors are
    declared too."""

    first = ("function",)

    function: str | None = None

    def apply(self, work: Work) -> str:
        known = {f"{one[0]}::{one[1]}": one for one in work.model.functions}
        if not known:
            raise problem("edit/no-match", "the model has no local functions", fix="leave the step out")
        if self.function is not None and self.function not in known:
            near = tensor_paths.near(self.function, list(known))
            raise problem(
                "edit/no-match",
                f"there is no local function {self.function!r}",
                why=f"the model has {', '.join(known)}",
                fix=f"write {(near or list(known))[0]!r}",
            )
        only = None if self.function is None else [known[self.function]]
        model, trouble = inlined(work.model, only=only)
        if trouble:
            raise problem(
                "edit/not-inlined", "the functions cannot be inlined", why=trouble, fix="inline them one by one"
            )
        declares = any(value.shape is not None for value in _inside(work.model))
        before = {value.name for value in _inside(work.model)}
        work.become(model, inlines=True)
        if declares:
            work.infer()
            for value in _inside(model):
                if value.name not in before:
                    work.declare(value)
        return self.function or several(len(known), "function")


def _inside(model: ir.Model) -> Iterator[ir.Value]:
    """Yields the results of nodes of the main graph, of branches and of bodies, without graph outputs."""
    for graph in walk.main_graphs(model):
        for node in graph:
            yield from (value for value in node.outputs if not value.is_graph_output())
