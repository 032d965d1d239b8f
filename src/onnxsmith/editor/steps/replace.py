"""Defines `replace`, which replaces every match of a pattern by other operators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, several
from onnxsmith.editor.dead_node_removal import called_functions, remove_uncalled
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.match_replacement import replace_all
from onnxsmith.editor.places import ALL, places
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_conversion import pattern_of, replacement_of
from onnxsmith.graph.structure import walk


@dataclass(frozen=True)
class Replace(Step):
    """Replaces every match of the pattern `find` by the operators of `by`. Both are ONNX text with variables, or, in
    Python, functions of operators. `by` reads variables of `find` and intermediate results of `find`, and has as many
    results; a result may be a variable. `where` has conditions on the names in `find`, `{x = {dtype = "float32", rank =
    2}}`. `count` is the required number of matches, or "all". The outputs must keep their numbers, unless `changes`
    says that they change on purpose. Nodes of a match that other nodes read stay."""

    first = ("find", "by")

    find: str | Pattern | Callable[..., Any]
    by: str | Pattern | Callable[..., Any]
    where: Mapping[str, Any] = field(default_factory=dict)
    count: int | str = ALL
    changes: bool = False

    def __post_init__(self) -> None:
        for name, read in (("find", pattern_of), ("by", replacement_of)):
            given = getattr(self, name)
            if callable(given):
                with contextlib.suppress(OnnxsmithError):  # a pattern that text cannot express is not recorded
                    object.__setattr__(self, name, read(given).text())

    def apply(self, work: Work) -> str:
        pattern, by = pattern_of(self.find), replacement_of(self.by)
        if len(pattern.outputs) != len(by.outputs):
            raise problem(
                "edit/replacement",
                f"find has {several(len(pattern.outputs), 'result')}, by has {len(by.outputs)}",
                why="each result of the pattern needs one that takes its place",
                fix="name the results in the same order: (x) => (y, z)",
            )
        if self.where:
            work.infer()  # dtypes and shapes that the file does not declare
        said = " ".join(self.find.split()) if isinstance(self.find, str) else pattern.name
        called = called_functions(work.model)
        matches = places(work.model, pattern, self.where, self.count, said)
        labels = first_few([walk.node_label(match.node) for match in matches], 3)
        new = replace_all(work, matches, by)
        if self.changes:
            work.change(*new)
        work.reshape(*new)
        remove_uncalled(work.model, called)
        return f"in {several(len(matches), 'place')}: {labels}"
