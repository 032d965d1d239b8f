"""The costs of a model by torch module: multiply-accumulates, parameters and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import size
from onnxsmith.base.report.parts.model_summary import MacTerm
from onnxsmith.base.words import several

_MOST_ROWS = 40
"""Rows in a terminal. A choice: about a screen; deeper modules are left out first."""
_LONGEST = 44
"""Characters of the longest formula in a table; a longer one is only in JSON. A choice: a terminal's width."""
_TITLES = {"module": "torch module", "scope": "scope in node names", "operator": "operator"}


@dataclass(frozen=True)
class Amount:
    """A number for the report's sizes, `at`, and its formula: the sum of `terms`; None if that is too long."""

    at: int
    terms: tuple[MacTerm, ...] | None

    def __str__(self) -> str:
        return f"{self.at:,}" if self.terms is None else " + ".join(map(str, self.terms)) or "0"

    @property
    def symbolic(self) -> bool:
        """Whether the number depends on sizes."""
        return self.terms is None or any(term.dims for term in self.terms)


@dataclass(frozen=True)
class CostRow:
    """The costs of a module, including the modules inside it. If the file names no modules, the row is a node-name
    scope or an operator. `depth` is 0 at the top. `name` is "" for nodes without a module. `activations` are bytes."""

    name: str
    depth: int
    nodes: int
    macs: Amount
    parameters: int
    weight_bytes: int
    activations: Amount


@dataclass(frozen=True)
class Peak:
    """The peak memory, in `bytes`, of inputs and intermediate tensors. It assumes that nodes run in the order of the
    file, and that every tensor has memory of its own from the node that computes it to its last reader.

    `node` is the node that runs at the peak. `always` is whether the formula holds for all sizes. If not, the peak may
    be at another node for other sizes; `bound` is then an upper bound for all sizes.
    """

    bytes: Amount
    node: str
    always: bool
    bound: Amount


@dataclass(frozen=True)
class Costs(Part):
    """The costs of one run.

    `by` is `module`, `scope` or `operator`. `sizes` are the sizes of the symbols, `examples` the sizes that the user
    did not give. `macs` are the multiply-accumulates of `counted` nodes. They leave out nodes of `uncounted` operators,
    which have no rule, and nodes of `unknown_shape`; nodes `without_macs` have none by convention. All three are
    numbers of nodes by operator. `unsized` tensors have an unknown size, and count in no memory. `assumptions` say how
    branches and loops were counted.
    """

    title: ClassVar[str] = "Costs"

    by: str
    sizes: dict[str, int]
    examples: tuple[str, ...]
    macs: Amount
    counted: int
    parameters: int
    weight_bytes: int
    activations: Amount
    peak: Peak
    rows: tuple[CostRow, ...]
    uncounted: dict[str, int]
    unknown_shape: dict[str, int]
    without_macs: dict[str, int]
    unsized: int
    assumptions: tuple[str, ...]

    def blocks(self) -> Iterator[Block]:
        peak = self.peak.bytes
        yield facts(
            [
                ("at the sizes", self._sizes()),
                ("multiply-adds", _told(self.macs, short(self.macs.at))),
                ("parameters", f"{self.parameters:,}"),
                ("weights", size(self.weight_bytes)),
                ("activations", _told(self.activations, size(self.activations.at), "bytes")),
                ("peak of activations", f"{_told(peak, size(peak.at), 'bytes')}, at {self.peak.node or 'the start'}"),
                ("peak at other sizes", self._other_sizes()),
                ("no multiply-adds", _listed(self.without_macs)),
            ]
        )
        if self.uncounted:
            yield Text(f"not counted: {_listed(self.uncounted)}", Tone.WARN)
        if self.unknown_shape:
            yield Text(f"not counted, because a shape is unknown: {_listed(self.unknown_shape)}", Tone.WARN)
        if self.unsized:
            yield Text(f"not in the memory: {several(self.unsized, 'tensor')} of unknown size", Tone.WARN)
        for line in self.assumptions:
            yield Text(line)
        yield self._table()

    def _sizes(self) -> str:
        examples = set(self.examples)
        return ", ".join(f"{k}={v}{' (example)' if k in examples else ''}" for k, v in self.sizes.items())

    def _other_sizes(self) -> str | None:
        if self.peak.always or not (self.peak.bytes.symbolic or self.peak.bound.symbolic):
            return None
        bound = self.peak.bound
        return "may be at another node" + (f", at most {bound} bytes" if bound.terms is not None else "")

    def _table(self) -> Table:
        symbolic = any(row.macs.symbolic or row.activations.symbolic for row in self.rows)
        head: tuple[str, ...] = (_TITLES[self.by], "nodes", "multiply-adds", "parameters", "activations")
        rows = []
        for row in self.rows:
            name = "  " * row.depth + (row.name or "(none)")
            cells: tuple[str, ...] = (name, f"{row.nodes:,}", f"{row.macs.at:,}", f"{row.parameters:,}")
            cells += (size(row.activations.at),)
            if symbolic:
                cells += (_formula(row.macs), _formula(row.activations))
            rows.append(cells)
        head += ("formula", "bytes") if symbolic else ()
        places = (Places(0, "module", tuple(row.name for row in self.rows)),)
        return Table(head, tuple(rows), right=(1, 2, 3, 4), rows_in_terminal=self._shown(), places=places)

    def _shown(self) -> tuple[int, ...] | None:
        """Returns the rows for a terminal: all rows, or the depths that fit, or the largest modules of the top
        level."""
        if len(self.rows) <= _MOST_ROWS:
            return None
        depths = sorted({row.depth for row in self.rows})
        fitting = [d for d in depths if sum(row.depth <= d for row in self.rows) <= _MOST_ROWS]
        if fitting:
            return tuple(index for index, row in enumerate(self.rows) if row.depth <= fitting[-1])
        top = [index for index, row in enumerate(self.rows) if row.depth == depths[0]]
        return tuple(sorted(sorted(top, key=lambda index: -self.rows[index].macs.at)[:_MOST_ROWS]))


def short(count: int) -> str:
    """Writes a large count with three digits: `1.81 G`, `512`."""
    value, units = float(count), ["", " K", " M", " G", " T", " P"]
    while value >= 999.5 and len(units) > 1:
        value, _ = value / 1000, units.pop(0)
    return f"{value:.3g}{units[0]}" if count >= 1000 else str(count)


def _told(found: Amount, number: str, unit: str = "") -> str:
    if not found.symbolic:
        return number if unit or number == str(found) else f"{number} ({found})"
    if found.terms is None or len(str(found)) > 2 * _LONGEST:
        return f"{number} at these sizes"
    return f"{found}{' ' + unit if unit else ''} = {number}"


def _formula(found: Amount) -> str:
    text = str(found)
    return text if found.symbolic and found.terms is not None and len(text) <= _LONGEST else ""


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {op}" for op, count in counts.items())
