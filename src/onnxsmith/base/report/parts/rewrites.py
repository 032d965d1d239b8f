"""All rewrites of a simplification, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text
from onnxsmith.base.report.parts.simplification import Entry


@dataclass(frozen=True)
class Rewrites(Part):
    """The rewrites that fired, in order, and the refused rewrites with their reasons."""

    title = "Rewrites"

    fired: tuple[Entry, ...]
    refused: tuple[Entry, ...]

    def blocks(self) -> Iterator[Block]:
        if not self.fired and not self.refused:
            yield Text("none")
        if self.fired:
            rows = tuple((str(e.id), e.rule, e.where, _change(e)) for e in self.fired)
            yield Table(("number", "rule", "where", "what"), rows, right=(0,), places=_places(2, self.fired))
        if self.refused:
            cells = tuple((e.rule, e.where, e.why_not) for e in self.refused)
            yield Table(("refused", "where", "why"), cells, places=_places(1, self.refused))


def _places(column: int, entries: tuple[Entry, ...]) -> tuple[Places, ...]:
    return (Places(column, "node", tuple(entry.where for entry in entries)),)


def _change(entry: Entry) -> str:
    if not entry.gone and not entry.made:
        return ""
    return f"{', '.join(entry.gone) or 'nothing'} → {', '.join(entry.made) or 'nothing'}"
