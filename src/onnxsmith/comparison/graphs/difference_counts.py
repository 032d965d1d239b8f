"""Sorts differences into report parts, counts them, and removes those that the caller ignores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Part
from onnxsmith.base.report.parts.model_changes import (
    InterfaceChanges,
    NodeChange,
    NodeChanges,
    PortChange,
    PropertyChange,
    PropertyChanges,
    Region,
    WeightChange,
    WeightChanges,
)

IGNORED = ("names", "weights", "shapes", "metadata", "doc", "versions")
"""The kinds of differences that a caller can ignore."""

_WEIGHTS = {
    "form": "converted weight",
    "rounding": "differently rounded weight",
    "removed": "removed weight",
    "added": "added weight",
}
_PROPERTIES = {
    "version": ("version", "versions"),
    "function": ("function", ""),
    "metadata": ("metadata change", "metadata"),
    "doc": ("description", "doc"),
    "shape": ("declared shape", "shapes"),
}
"""The noun for each kind of property, and the word by which a caller ignores it."""


@dataclass(frozen=True)
class Rows:
    """All differences, by kind."""

    changed: tuple[NodeChange, ...]
    regions: tuple[Region, ...]
    weights: tuple[WeightChange, ...]
    interface: tuple[PortChange, ...]
    properties: tuple[PropertyChange, ...]
    nested: tuple[int, int] = (0, 0)
    """Removed and added nodes in branches and bodies of the nodes in `regions`."""


class Counted:
    """The differences that count. `parts` show them; `counts` and `ignored` have their numbers by kind. `renamed` is
    the number of inputs, outputs and dimensions with another name."""

    def __init__(self, rows: Rows, ignore: Collection[str]) -> None:
        self._ignore = ignore
        self.counts: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.renamed = sum(_port_word(row) == "names" for row in rows.interface)
        self.parts = tuple(self._parts(rows))

    def _parts(self, rows: Rows) -> Iterator[Part]:
        interface = tuple(row for row in rows.interface if self._keeps("interface change", _port_word(row)))
        if interface:
            yield InterfaceChanges(interface)
        for noun, count in (
            ("changed node", len(rows.changed)),
            ("removed node", sum(len(one.removed) for one in rows.regions) + rows.nested[0]),
            ("added node", sum(len(one.added) for one in rows.regions) + rows.nested[1]),
        ):
            if count:
                self.counts[noun] += count
        if rows.changed or rows.regions:
            yield NodeChanges(rows.changed, rows.regions)
        readable = [row for row in rows.weights if row.kind != "unreadable"]
        weights = tuple(row for row in readable if self._keeps(_WEIGHTS.get(row.kind, "changed weight"), "weights"))
        weights += tuple(row for row in rows.weights if row.kind == "unreadable")
        if weights:
            yield WeightChanges(weights)
        properties = tuple(row for row in rows.properties if self._keeps(*_PROPERTIES[row.kind]))
        if properties:
            yield PropertyChanges(properties)

    def _keeps(self, noun: str, word: str) -> bool:
        """Counts a row. Returns whether it counts as a difference."""
        is_kept = word not in self._ignore
        (self.counts if is_kept else self.ignored)[noun] += 1
        return is_kept


def _port_word(row: PortChange) -> str:
    return "names" if row.kind in ("renamed", "dimension renamed") else ""
