"""What differs between two models besides their nodes: interfaces, names, properties and weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table
from onnxsmith.base.report.parts._text import dims
from onnxsmith.base.report.parts.graph_changes import first_rows
from onnxsmith.base.words import shortened


@dataclass(frozen=True)
class PortChange:
    """An input or output that differs. `side` is `input` or `output`, `kind` one of `added`, `removed`, `renamed`,
    `type` (dtype, shape or kind), `dimension renamed`, `order` and `default`. `old` and `new` say what a caller sees:
    names, types or positions. `path` is "" in the main graph."""

    side: str
    kind: str
    name: str
    old: str
    new: str
    path: str = ""


@dataclass(frozen=True)
class InterfaceChanges(Part):
    """Inputs and outputs that differ, including those of branches, bodies and functions."""

    title = "Interface"

    rows: tuple[PortChange, ...]

    def blocks(self) -> Iterator[Block]:
        nested = any(row.path for row in self.rows)
        cells = tuple((f"{r.side} {r.name}", r.kind, r.old, r.new, *((r.path,) * nested)) for r in self.rows)
        yield Table(
            ("interface", "change", "old", "new", *(("in",) * nested)), cells, rows_in_terminal=first_rows(len(cells))
        )


_RENAMINGS_IN_TERMINAL = 6
"""Rows in a terminal. A choice: few, because names alone change nothing."""


@dataclass(frozen=True)
class Renaming:
    """A pair of names. `kind` is `node`, `tensor`, `weight`, `graph` or `function`; `path` is "" in the main graph."""

    kind: str
    old: str
    new: str
    path: str = ""


@dataclass(frozen=True)
class Renamings(Part):
    """Names that differ. They do not count as a difference."""

    title = "Other names"

    rows: tuple[Renaming, ...]

    def blocks(self) -> Iterator[Block]:
        cells = tuple((row.kind, row.old or "-", row.new or "-", row.path) for row in self.rows)
        shown = tuple(range(_RENAMINGS_IN_TERMINAL)) if len(cells) > _RENAMINGS_IN_TERMINAL else None
        yield Table(("kind", "old", "new", "in"), cells, rows_in_terminal=shown)


_LONGEST = 60
"""Longest text in a table, in characters. A choice: two texts in one line; JSON has them in full."""


@dataclass(frozen=True)
class PropertyChange:
    """A property that differs. `kind` is `version`, `function`, `metadata`, `doc` or `shape` (a declared type of a
    tensor inside a graph). `where` is "" for the model, otherwise a node, tensor or function. `old` and `new` are
    texts, `-` if a side has none. `about` has details, such as the operators that a version changes."""

    kind: str
    name: str
    old: str
    new: str
    where: str = ""
    about: str = ""


@dataclass(frozen=True)
class PropertyChanges(Part):
    """Properties that differ."""

    title = "Properties"

    rows: tuple[PropertyChange, ...]

    def blocks(self) -> Iterator[Block]:
        cells = tuple((r.kind, r.name, _short(r.old), _short(r.new), r.where, r.about) for r in self.rows)
        yield Table(("kind", "property", "old", "new", "of", ""), cells, rows_in_terminal=first_rows(len(cells)))


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _LONGEST)


_ROWS_IN_TERMINAL = 20
"""Rows in a terminal: the weights that changed most. A choice: less than a screen."""


@dataclass(frozen=True)
class WeightChange:
    """An initializer or constant that differs.

    `form` says how the same weight is stored in another form: `transposed (1, 0)`, `reshaped`, `cast`, `Constant →
    initializer`; "" if only values differ. The figures compare the weights in the same form; if only the dtype differs,
    they show the rounding of the cast. `old` and `new` are the values of small constants. `max_abs` and
    `cosine_distance` are over elements that are finite on both sides. `max_rel` is relative to the root mean square
    plus the element's own size. `changed` is the share of the elements that differ, where NaN equals NaN.
    `cosine_distance` is 1 minus the cosine of the angle between the two weights. The figures are None if the shapes do
    not fit, if only one model has the weight, or if it has no numbers. `kind` is `values`, `rounding` (float32 or
    float64 values that differ by a few units in the last place), `form`, `type` (dtype or shape differ by more than the
    form), `removed` or `added` (only one model has it, and no node reads it), or `unreadable`. `aliases` are the names
    of the torch parameters that an exporter computed the weight from.
    """

    path: str
    name: str
    new_name: str
    kind: str
    dtype: str
    new_dtype: str
    shape: tuple[int, ...]
    new_shape: tuple[int, ...]
    readers: tuple[str, ...]
    form: str = ""
    old: str = ""
    new: str = ""
    max_abs: float | None = None
    max_rel: float | None = None
    changed: float | None = None
    cosine_distance: float | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class WeightChanges(Part):
    """Weights that differ, the most changed first in a terminal."""

    title = "Weights"

    rows: tuple[WeightChange, ...]

    def blocks(self) -> Iterator[Block]:
        nested = any(row.path for row in self.rows)
        head = (
            "weight",
            "dtype",
            "shape",
            "change",
            "max abs",
            "max rel",
            "changed",
            "1 - cosine",
            *(("in",) * nested),
        )
        cells = tuple((*_cells(row), *((row.path,) * nested)) for row in self.rows)
        order = sorted(range(len(self.rows)), key=lambda index: -_rank(self.rows[index]))
        shown = tuple(sorted(order[:_ROWS_IN_TERMINAL])) if len(order) > _ROWS_IN_TERMINAL else None
        places = (Places(0, "tensor", tuple(row.new_name or row.name for row in self.rows)),)
        yield Table(head, cells, right=(4, 5, 6, 7), rows_in_terminal=shown, places=places)


def _rank(row: WeightChange) -> float:
    if row.max_rel is None:
        return math.inf
    return row.max_rel if not math.isnan(row.max_rel) else math.inf


def _cells(row: WeightChange) -> tuple[str, ...]:
    dtype = row.dtype if row.dtype == row.new_dtype or not row.new_dtype else f"{row.dtype or '-'} → {row.new_dtype}"
    old, new = dims(row.shape), dims(row.new_shape)
    name = row.name or row.new_name
    if row.kind == "added":
        dtype, old = row.new_dtype, new
    elif row.kind != "removed" and old != new:
        old = f"{old} → {new}"
    what = row.form or (row.kind if row.kind != "values" else "")
    if row.old or row.new:
        what = f"{f'{row.form}: ' if row.form else ''}{row.old} → {row.new}"
    share = "" if row.changed is None else f"{row.changed:.3%}"
    if row.aliases:
        name += f" ({', '.join(row.aliases)})"
    return (name, dtype, old, what, _four(row.max_abs), _four(row.max_rel), share, _four(row.cosine_distance))


def _four(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
