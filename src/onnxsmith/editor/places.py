"""Finds the places for a replacement: the expected number of pattern matches that meet the conditions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, several
from onnxsmith.editor.node_selectors import CONDITIONS, fits, is_match, shown
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.patterns.match import Match
from onnxsmith.graph.patterns.near_misses import near_misses
from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_search import find
from onnxsmith.graph.shapes import facts
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
            why="count is the number of places that the pattern must match",
            fix=f'write a number from 1, or "{ALL}"',
        )
    names = dict.fromkeys([one.name for one in pattern.variables])
    names |= dict.fromkeys(name for node in pattern.nodes for name in node.outputs if name)
    check(where, names)
    turned_down: dict[ir.Node, str] = {}

    def allowed(match: Match) -> bool:
        why = unmet(match, where)
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
        return _count(found, count, f"; places that do not match: {misses}" if misses else "")
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
        fix=f"write count = {len(found)} if these places are right, or change the pattern or its conditions",
    )


_OF_VALUES = ("tensor", "dtype", "rank", "shape")
ANY = "?"
"""Is an element of `shape` that stands for any size."""

Where = Mapping[str, Any]
"""Maps a variable or a result of the pattern to its conditions. A text is a condition on the tensor's name."""


def check(where: Where, names: Collection[str]) -> None:
    """Raises if a condition can never be met.

    Raises:
        OnnxsmithError: `edit/where`, `build/dtype`.
    """
    if not isinstance(where, Mapping):
        raise _wrong(
            f"`where` is {where!r}, not a table", "", "write the conditions in a table, under the names of the pattern"
        )
    for name, wanted in where.items():
        if name not in names:
            raise _wrong(f"the pattern has no name {name!r}", name, f"it names {', '.join(names)}")
        for key, value in _table(wanted, name).items():
            if key == "dtype":
                _dtypes(value, name)
            if key == "rank" and (not isinstance(value, int) or isinstance(value, bool)):
                raise _wrong(f"rank is {value!r}, not an integer", name, "rank = 2 selects matrices")
            if key == "shape" and not (isinstance(value, list | tuple) and all(_is_dim(one) for one in value)):
                raise _wrong(f"shape is {value!r}", name, 'a shape is a list such as ["batch", 3, "?"]')
            if key == "attributes" and not isinstance(value, Mapping):
                raise _wrong(f"attributes is {value!r}", name, "attributes is a table such as { axis = 1 }")
            if key not in ("dtype", "rank", "shape", "attributes") and not isinstance(value, str):
                raise _wrong(
                    f"{key} is {value!r}, not a text", name, "write a name, in which * stands for any characters"
                )


def unmet(match: Match, where: Where) -> str:
    """Returns the first condition that a match does not meet, as text for the user; "" if the match meets all
    conditions."""
    for name, wanted in where.items():
        value = match.values.get(name)
        for key, one in _table(wanted, name).items():
            found = _found(value, key)
            if value is None or not _meets(value, key, one):
                return f"{name}: {key} is {found}, not {_said(one)}"
    return ""


def _table(wanted: Any, name: str) -> Mapping[str, Any]:
    if isinstance(wanted, str):
        return {"tensor": wanted}
    known = (*_OF_VALUES, *CONDITIONS)
    if not isinstance(wanted, Mapping) or not wanted:
        raise _wrong(f"{shown(wanted)} is not a table of conditions", name, f"conditions are {', '.join(known)}")
    unknown = [key for key in wanted if key not in known]
    if unknown:
        raise _wrong(f"{', '.join(map(str, unknown))} is no condition", name, f"conditions are {', '.join(known)}")
    return wanted


def _meets(value: ir.Value, key: str, wanted: Any) -> bool:
    if key == "tensor":
        return fits(value.name or "", wanted)
    if key == "dtype":
        return value.dtype in _dtypes(wanted, "")
    if key in ("rank", "shape"):
        dims = facts.dims(value)
        if dims is None:
            return False
        if key == "rank":
            return len(dims) == int(wanted)
        return len(dims) == len(wanted) and all(one in (ANY, dim) for one, dim in zip(wanted, dims, strict=True))
    node = value.producer()
    return node is not None and is_match(node, {key: wanted})


def _found(value: ir.Value | None, key: str) -> str:
    """Returns the actual property of a value that a condition compares."""
    if value is None:
        return "not there"
    if key == "tensor":
        return value.name or ""
    if key == "dtype":
        return dtypes.shown(value.dtype) or "unknown"
    if key in ("rank", "shape"):
        dims = facts.dims(value)
        if dims is None:
            return "unknown"
        return str(len(dims)) if key == "rank" else _said([ANY if dim is None else dim for dim in dims])
    node = value.producer()
    return (
        f"that of {walk.node_label(node)}" if node is not None else f"none ({value.name} is not the output of a node)"
    )


def _said(wanted: Any) -> str:
    if isinstance(wanted, list | tuple):
        return f"[{', '.join(map(str, wanted))}]"
    return shown(wanted) if isinstance(wanted, Mapping) else str(wanted)


def _dtypes(wanted: Any, name: str) -> list[ir.DataType]:
    """Reads a dtype, or a list of alternative dtypes."""
    return [dtypes.read(one, f"where, {name}") for one in (wanted if isinstance(wanted, list | tuple) else [wanted])]


def _is_dim(given: Any) -> bool:
    return isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool))


def _wrong(what: str, name: str, why: str) -> OnnxsmithError:
    return problem(
        "edit/where",
        what,
        where=f"where, {name}" if name else "where",
        why=why,
        fix=f'write where = {{ {name or "x"} = {{ dtype = "float32", rank = 2 }} }}',
    )
