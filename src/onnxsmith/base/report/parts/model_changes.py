"""What differs between two models besides their nodes: interfaces, names, properties and weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, facts
from onnxsmith.base.report.parts._text import dims
from onnxsmith.base.report.parts.edits import Entry
from onnxsmith.base.words import constants_change, first_few, several, shortened

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


_LONGEST_TEXT = 60
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
    return shortened(" ".join(text.split()), _LONGEST_TEXT)


_WEIGHTS_IN_TERMINAL = 20
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
        shown = tuple(sorted(order[:_WEIGHTS_IN_TERMINAL])) if len(order) > _WEIGHTS_IN_TERMINAL else None
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


@dataclass(frozen=True)
class Difference(Part):
    """Counts of the differences of two models. `old_nodes` and `new_nodes` are the nodes without `Constant` nodes,
    which `old_constants` and `new_constants` count, `paired` the nodes that both models have, `equal` the pairs in
    which nothing changed. `weights` are the compared pairs of weights, `elements` their elements in the old model.
    `changes` are the differences by kind, `ignored` those that the caller ignores, `names` those in names only.
    `otherwise` are the nodes without a partner that compute the same as nodes of the other model, and the regions that
    they form. `of_weights` are the nodes without a partner that compute only from stored tensors."""

    title = "Difference"
    recorded = (
        "old_nodes",
        "new_nodes",
        "paired",
        "equal",
        "weights",
        "elements",
        "changes",
        "ignored",
        "names",
        "otherwise",
        "of_weights",
    )

    old_nodes: int
    new_nodes: int
    paired: int
    equal: int
    weights: int
    elements: int
    changes: dict[str, int]
    ignored: dict[str, int]
    names: dict[str, int]
    otherwise: dict[str, int] = field(default_factory=dict)
    of_weights: dict[str, int] = field(default_factory=dict)
    old_constants: int = 0
    new_constants: int = 0

    def blocks(self) -> Iterator[Block]:
        nodes = f"{self.old_nodes:,} → {self.new_nodes:,}, {self.paired:,} in both, {self.equal:,} of them unchanged"
        yield facts(
            [
                ("nodes", nodes),
                ("Constant nodes", constants_change(self.old_constants, self.new_constants)),
                ("weights compared", f"{self.weights:,} ({several(self.elements, 'element')})" if self.weights else ""),
                ("differences", _counted(self.changes) or "none"),
                ("ignored", _counted(self.ignored)),
                ("other names", _counted(self.names)),
                ("computed by other nodes", otherwise_text(self.otherwise)),
                ("of weights alone", of_weights_text(self.of_weights)),
            ]
        )


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(several(count, what) for what, count in counts.items() if count)


def otherwise_text(counts: dict[str, int]) -> str:
    """Says how many nodes without a partner compute the same as nodes of the other model; "" if none do."""
    if not counts:
        return ""
    said = [f"{counts[what]:,} {what}" for what in ("removed", "added") if counts[what]]
    return f"the results of {' and '.join(said)} nodes, in {several(counts['regions'], 'region')}"


def of_weights_text(counts: dict[str, int]) -> str:
    """Says how many nodes without a partner compute only from stored tensors; "" if none do."""
    said = " and ".join(f"{counts[what]:,} {what}" for what in ("removed", "added") if counts.get(what))
    return f"{said} nodes, such as copies of weights" if said else ""
