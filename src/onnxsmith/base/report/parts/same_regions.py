"""Regions of two models that compute the same results by different nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table
from onnxsmith.base.report.parts.node_changes import first_rows
from onnxsmith.base.words import first_few

_NODES = 6
"""Nodes of a region that a row names. A choice: one line; JSON has all."""


@dataclass(frozen=True)
class RegionNode:
    """A node of a region. `elsewhere` is whether it also belongs to a pair or to another region, and is counted
    there."""

    name: str
    op: str
    elsewhere: bool = False


@dataclass(frozen=True)
class SameRegion:
    """Nodes of the first model and nodes of the second that compute the same results. `results` are the names of these
    tensors in both models. If a model has no nodes of its own for the region, all its nodes here are counted
    elsewhere."""

    old: tuple[RegionNode, ...]
    new: tuple[RegionNode, ...]
    results: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SameRegions(Part):
    """The regions of two models that compute the same by other nodes."""

    title = "Computed otherwise"

    rows: tuple[SameRegion, ...]

    def blocks(self) -> Iterator[Block]:
        cells = tuple((_listed(row.old), _listed(row.new), _results(row.results)) for row in self.rows)
        places = (
            Places(0, "old node", tuple(next((one.name for one in row.old), "") for row in self.rows)),
            Places(1, "node", tuple(next((one.name for one in row.new), "") for row in self.rows)),
        )
        head = ("in the old model", "in the new model", "same results")
        yield Table(head, cells, rows_in_terminal=first_rows(len(cells)), places=places)


def _listed(nodes: Sequence[RegionNode]) -> str:
    shown = first_few([f"{node.op} {node.name}" for node in nodes], _NODES)
    return f"{shown}{' (counted elsewhere)' if all(node.elsewhere for node in nodes) else ''}"


def _results(names: Sequence[tuple[str, str]]) -> str:
    return first_few([old if old == new else f"{old} = {new}" for old, new in names], 2)
