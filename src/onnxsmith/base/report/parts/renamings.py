"""Nodes, tensors and weights that have another name in the second model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table

_ROWS_IN_TERMINAL = 6
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
        shown = tuple(range(_ROWS_IN_TERMINAL)) if len(cells) > _ROWS_IN_TERMINAL else None
        yield Table(("kind", "old", "new", "in"), cells, rows_in_terminal=shown)
