"""What differs between the nodes of two graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text
from onnxsmith.base.report.parts.simplification import Entry
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


@dataclass(frozen=True)
class OperatorChanges(Part):
    """Node counts by operator, before and after; `by_rule` has the change in each count for each rule."""

    title = "Difference"

    before: dict[str, int]
    after: dict[str, int]
    by_rule: dict[str, dict[str, int]]

    def blocks(self) -> Iterator[Block]:
        changed = [op for op in sorted({*self.before, *self.after}) if self.before.get(op, 0) != self.after.get(op, 0)]
        if not changed:
            yield Text("the same operators as before")
            return
        counts = ((op, self.before.get(op, 0), self.after.get(op, 0)) for op in changed)
        rows = tuple((op, str(old), str(new), f"{new - old:+}") for op, old, new in counts)
        yield Table(("operator", "before", "after", "change"), rows, right=(1, 2, 3))
        yield Table(("rule", "removed and added"), tuple((rule, _named(by)) for rule, by in self.by_rule.items()))


def _named(changes: dict[str, int]) -> str:
    return ", ".join(f"{change:+} {op}" for op, change in sorted(changes.items()) if change) or "no change in number"


def operator_changes(before: dict[str, int], after: dict[str, int], fired: Iterable[Entry]) -> OperatorChanges:
    """Makes the part from the node counts before and after, and the rewrites that fired."""
    by_rule: dict[str, Counter[str]] = {}
    for entry in fired:
        if entry.gone or entry.made:
            changes = by_rule.setdefault(entry.rule, Counter())
            changes.update(entry.made)
            changes.subtract(entry.gone)
    return OperatorChanges(before, after, {rule: dict(changes) for rule, changes in by_rule.items()})


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
        cells = tuple((_region(row.old), _region(row.new), _results(row.results)) for row in self.rows)
        places = (
            Places(0, "old node", tuple(next((one.name for one in row.old), "") for row in self.rows)),
            Places(1, "node", tuple(next((one.name for one in row.new), "") for row in self.rows)),
        )
        head = ("in the old model", "in the new model", "same results")
        yield Table(head, cells, rows_in_terminal=first_rows(len(cells)), places=places)


def _region(nodes: Sequence[RegionNode]) -> str:
    shown = first_few([f"{node.op} {node.name}" for node in nodes], _NODES)
    return f"{shown}{' (counted elsewhere)' if all(node.elsewhere for node in nodes) else ''}"


def _results(names: Sequence[tuple[str, str]]) -> str:
    return first_few([old if old == new else f"{old} = {new}" for old, new in names], 2)
