"""`inline`: replaces calls of local functions by their bodies."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.editing.steps.base import Step
from onnxsmith.editing.unneeded import forget_domains
from onnxsmith.editing.work import Work
from onnxsmith.model.graph import tensor_paths
from onnxsmith.model.surgery.inlining import inlined
from onnxsmith.problem import problem
from onnxsmith.words import several


@dataclass(frozen=True)
class Inline(Step):
    """Replaces the calls of the local function `function` (`domain::Name`), or of all functions, by their bodies. The
    outputs keep their numbers."""

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
        forget_domains(model, {one[0] for one in work.model.functions})
        work.become(model, inlines=True)
        return self.function or several(len(known), "function")
