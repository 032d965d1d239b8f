"""Finds the places for a replacement: the expected number of pattern matches that meet its conditions."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, several
from onnxsmith.editor import match_conditions
from onnxsmith.editor.match_conditions import Where
from onnxsmith.graph.patterns.match import Match
from onnxsmith.graph.patterns.near_misses import near_misses
from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_search import find
from onnxsmith.graph.structure import walk

_SHOWN = 5
"""Limits the places that an error names. A choice: one line."""
ALL = "all"


def places(model: ir.Model, pattern: Pattern, where: Where, count: Any, said: str) -> list[Match]:
    """Returns the matches that meet the conditions, at least one. `count` is the expected number of matches, or "all".
    `said` is the pattern as its author wrote it.

    Raises:
        OnnxsmithError: `edit/no-match` with the places that nearly match, `edit/match-count`, `edit/where`,
            `edit/step-argument`.
    """
    if count != ALL and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
        raise problem(
            "edit/step-argument",
            f"count is {count!r}",
            why="it is the number of places that the pattern must match",
            fix=f'write a number from 1, or "{ALL}"',
        )
    names = dict.fromkeys([one.name for one in pattern.variables])
    names |= dict.fromkeys(name for node in pattern.nodes for name in node.outputs if name)
    match_conditions.check(where, names)
    turned_down: dict[ir.Node, str] = {}

    def allowed(match: Match) -> bool:
        why = match_conditions.unmet(match, where)
        if why:
            turned_down.setdefault(match.node, why)
        return not why

    found = find(model, pattern, allowed=allowed, looks_at=tuple(where))
    if found and count in (ALL, len(found)):
        return found
    taken = {match.node for match in found}
    why_not = [f"{walk.node_label(node)}: {why}" for node, why in turned_down.items() if node not in taken]
    misses = first_few([*why_not, *map(str, near_misses(model, pattern))], _SHOWN, "; ")
    raise _too_many(found, count) if found and len(found) > count else _too_few(said, found, count, misses)


def _too_few(said: str, found: list[Match], count: Any, misses: str) -> OnnxsmithError:
    if found:
        return _count(found, count, f"; what does not match: {misses}" if misses else "")
    return problem(
        "edit/no-match",
        "the pattern matches nowhere",
        where=said,
        why=misses or "no operator of the pattern is in the model",
        fix="change the pattern, or leave the step out",
    )


def _too_many(found: list[Match], count: Any) -> OnnxsmithError:
    return _count(found, count, "")


def _count(found: list[Match], count: Any, more: str) -> OnnxsmithError:
    return problem(
        "edit/match-count",
        f"the pattern matches {several(len(found), 'place')}, not {count}",
        why=f"it matches {first_few([walk.node_label(match.node) for match in found], _SHOWN, '; ')}{more}",
        fix=f"write count = {len(found)} if these are right, or change the pattern or its conditions",
    )
