"""Differences between two models outside their graphs: versions, metadata, documentation, functions, declarations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table
from onnxsmith.base.report.parts.node_changes import first_rows
from onnxsmith.base.words import shortened

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
