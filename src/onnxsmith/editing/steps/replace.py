"""`replace`: replaces every match of a pattern by other operators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onnxsmith.editing.instantiating import instantiated
from onnxsmith.editing.places import ALL, places
from onnxsmith.editing.placing import operators
from onnxsmith.editing.steps.base import Step
from onnxsmith.editing.unneeded import called_functions, remove_uncalled
from onnxsmith.editing.work import Work, depending, graph_of
from onnxsmith.model.graph import captures, walk
from onnxsmith.patterns.match import Match
from onnxsmith.patterns.pattern import Pattern
from onnxsmith.patterns.pattern_of import pattern_of
from onnxsmith.patterns.replacement_of import replacement_of
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.words import several


@dataclass(frozen=True)
class Replace(Step):
    """Replaces every match of the pattern `find` by the operators of `by`. Both are ONNX text with variables, or in
    Python functions of operators. `by` reads variables of `find` and results inside of it, and has as many results; a
    result may be a variable. `where` has conditions on what `find` names, `{x = {dtype = "float32", rank = 2}}`, and
    `count` is the number of matches that there must be, or "all". The outputs must keep their numbers, unless `changes`
    says that they change on purpose. Nodes of a match that others read stay."""

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
                with contextlib.suppress(OnnxsmithError):  # what text cannot say stays a pattern, and is not recorded
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
        labels = ", ".join(walk.node_label(match.node) for match in matches[:3])
        replaced: dict[ir.Value, ir.Value] = {}
        for match in matches:
            self._replace(work, match, by, replaced)
        remove_uncalled(work.model, called)
        return f"in {several(len(matches), 'place')}: {labels}{', …' if len(matches) > 3 else ''}"

    def _replace(self, work: Work, match: Match, by: Pattern, replaced: dict[ir.Value, ir.Value]) -> None:
        labels = ", ".join(walk.node_label(node) for node in match.removable[:2])
        read = {*match.bindings, *(one.name for one in by.variables)}
        known = {name: value for name, value in match.values.items() if name in read and value not in match.outputs}
        bound = {name: _newest(value, replaced) for name, value in known.items()}
        _refuse_untaken(match, by, bound)
        if len(match.outputs) > 1:
            _refuse_dependent(work, match, bound)
        make = operators(work, graph_of(match.node), match.node, f"the replacement of {labels}")
        new = instantiated(by, make, bound, match.attributes)
        for old, value in zip(match.outputs, new, strict=True):
            if value in bound.values():  # a variable is no new value: what is an output needs a name of its own
                if old.is_graph_output():
                    value = make.Identity(value).value
            else:
                value.type = value.type or old.type
            _take_place(work, old, value)
            replaced[old] = value
            if self.changes:
                work.change(value)
        work.reshape(*new)
        for node in reversed(match.removable):
            if not any(one.uses() or one.is_graph_output() for one in node.outputs) and node.graph is not None:
                captures.release(node)
                node.graph.remove(node, safe=True)


def _take_place(work: Work, old: ir.Value, new: ir.Value) -> None:
    """Lets everything read the new value; a graph output keeps its name."""
    was_output, name = old.is_graph_output(), old.name
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    if was_output:
        old.name = work.names.free(f"{name}_replaced")
        new.name = name


def _newest(value: ir.Value, replaced: dict[ir.Value, ir.Value]) -> ir.Value:
    while value in replaced:
        value = replaced[value]
    return value


def _refuse_untaken(match: Match, by: Pattern, bound: Mapping[str, ir.Value]) -> None:
    read = {one.name for one in by.variables}
    missing = [one.name for one in match.pattern.variables if one.name in read and one.name not in bound]
    if missing:
        raise problem(
            "edit/replacement",
            f"by reads {', '.join(missing)}, which this match does not have",
            where=walk.node_label(match.node),
            why="the variable is in a choice of find that is not taken there",
            fix="write one replacement for each choice",
        )


def _refuse_dependent(work: Work, match: Match, bound: dict[str, ir.Value]) -> None:
    later = depending(work.model, set(match.outputs))
    wrong = [name for name, value in bound.items() if value in later]
    if wrong:
        raise problem(
            "edit/cycle",
            f"{', '.join(wrong)} is computed from a result of the pattern",
            where=walk.node_label(match.node),
            why="the replacement would read its own result",
            fix="make the pattern larger, so that it has what lies between",
        )
