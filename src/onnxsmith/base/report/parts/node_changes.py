"""The nodes that differ between two models: attributes, operators, wiring, and nodes that only one of them has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table
from onnxsmith.base.words import first_few, shortened

_ROWS_IN_TERMINAL = 20
"""Rows of each table in a terminal. A choice: less than a screen."""
_OPERATORS = 6
"""Largest number of operators of a replaced region that are listed one by one. A choice: one line."""
_LONGEST = 60
"""Longest value of an attribute in a table, in characters. A choice: two values in one line; JSON has them in full."""


@dataclass(frozen=True)
class AttributeChange:
    """An attribute that differs. `old` and `new` are exact texts, `-` if a side lacks the attribute. If the file leaves
    out the value, the text ends with `(default)`."""

    name: str
    old: str
    new: str


@dataclass(frozen=True)
class WiringChange:
    """An operand that is another tensor. `slot` is `input 1 (W)`, `output 0 (Y)`, or `output` for a graph output; `old`
    and `new` are names of tensors, or `omitted`."""

    slot: str
    old: str
    new: str


@dataclass(frozen=True)
class NodeChange:
    """A node that both models have, and its changes. `path` is "" in the main graph, otherwise the path of its branch,
    body or function. For a graph output, `op` is "" and `node` its name."""

    path: str
    node: str
    new_node: str
    op: str
    new_op: str
    attributes: tuple[AttributeChange, ...] = ()
    wiring: tuple[WiringChange, ...] = ()


@dataclass(frozen=True)
class OwnNode:
    """A node that only one model has. `weights` counts the elements of its constants."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    weights: int = 0


@dataclass(frozen=True)
class Reader:
    """A node that both models have and that reads a result of a region; or a graph output, with `op` ""."""

    node: str
    op: str
    slot: str
    old: str
    new: str


@dataclass(frozen=True)
class Region:
    """Connected nodes that were removed, added, or removed and replaced by added ones; `readers` read their results."""

    path: str
    removed: tuple[OwnNode, ...]
    added: tuple[OwnNode, ...]
    readers: tuple[Reader, ...] = ()


@dataclass(frozen=True)
class NodeChanges(Part):
    """Changed nodes, and regions of removed and added nodes."""

    title = "Nodes"

    changed: tuple[NodeChange, ...]
    regions: tuple[Region, ...]

    def blocks(self) -> Iterator[Block]:
        if self.changed:
            yield _changed(self.changed)
        if self.regions:
            yield _regions(self.regions)


def _changed(changed: Sequence[NodeChange]) -> Table:
    nested = any(one.path for one in changed)
    rows: list[tuple[str, ...]] = []
    nodes: list[str] = []
    for one in changed:
        lines = [("operator", one.op, one.new_op)] if one.op != one.new_op else []
        lines += [(a.name, shortened(a.old, _LONGEST), shortened(a.new, _LONGEST)) for a in one.attributes]
        lines += [(w.slot, w.old, w.new) for w in one.wiring]
        for number, line in enumerate(lines):
            first = (one.node, one.op or "graph output") if number == 0 else ("", "")
            rows.append((*first, *line, *((one.path if number == 0 else "",) * nested)))
            nodes.append((one.new_node or one.node) if number == 0 else "")
    head = ("changed node", "operator", "what", "old", "new", *(("in",) * nested))
    places = (Places(0, "node", tuple(nodes)),)
    return Table(head, tuple(rows), rows_in_terminal=first_rows(len(rows)), places=places)


def _regions(regions: Sequence[Region]) -> Table:
    nested = any(one.path for one in regions)
    rows = []
    for one in regions:
        readers = first_few(dict.fromkeys(reader.node for reader in one.readers), _OPERATORS)
        rows.append((_listed(one.removed), _listed(one.added), readers, *((one.path,) * nested)))
    head = ("removed", "added", "before", *(("in",) * nested))
    places = (
        Places(0, "old node", tuple(_first(one.removed) for one in regions)),
        Places(1, "node", tuple(_first(one.added) for one in regions)),
        Places(2, "node", tuple(one.readers[0].node if one.readers else "" for one in regions)),
    )
    return Table(head, tuple(rows), rows_in_terminal=first_rows(len(rows)), places=places)


def _first(nodes: Sequence[OwnNode]) -> str:
    """Returns the name of the first node; if it has none, the name of its first result."""
    return next((node.name or next(iter(node.outputs), "") for node in nodes), "")


def _listed(nodes: Sequence[OwnNode]) -> str:
    if len(nodes) <= _OPERATORS:
        return ", ".join(f"{node.op} {node.name}".strip() for node in nodes)
    counts = Counter(node.op for node in nodes).most_common()
    text = ", ".join(f"{count} {op}" for op, count in counts[:_OPERATORS])
    rest = sum(count for _, count in counts[_OPERATORS:])
    return f"{len(nodes):,} nodes: {text}{f', {rest} others' if rest else ''}"


def first_rows(count: int) -> tuple[int, ...] | None:
    """Returns the rows of a table with `count` rows that a terminal shows; None for all."""
    return tuple(range(_ROWS_IN_TERMINAL)) if count > _ROWS_IN_TERMINAL else None
