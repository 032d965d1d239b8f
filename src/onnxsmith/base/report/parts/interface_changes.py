"""How the inputs and outputs of two models differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table
from onnxsmith.base.report.parts.node_changes import first_rows


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
