"""The model is simplified."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.base.words import pasted, several
from onnxsmith.gate.guarding.checks.base import Check
from onnxsmith.gate.guarding.guarded_file import GuardedFile


class UnneededNodes(Check):
    """With `--simplified`: no rule of `simplify` would remove a node. Constants are not folded here, because that may
    run nodes, so `simplify` may remove more."""

    def problems(self, file: GuardedFile) -> Iterator[Problem]:
        if file.model is None or file.error is not None or not file.is_simplified:
            return
        from onnxsmith.optimizer import folding  # most runs need no rules
        from onnxsmith.optimizer.simplification_rounds import simplified

        _, part = simplified(file.model, skip=[folding.RULE])
        removed = part.nodes_before - part.nodes_after
        if removed > 0:
            name = pasted(file.path)
            yield Problem(
                "guard/not-simplified",
                f"`simplify` would remove at least {several(removed, 'node')} of {part.nodes_before:,}",
                where=str(file.path),
                why="every node takes time, and makes the graph harder to read",
                fix=f"`onnxsmith simplify {name} -o {name}`, which compares the result with the model",
            )
