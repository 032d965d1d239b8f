"""Describes a model on one page, and its costs by torch module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Facts, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import metadata
from onnxsmith.base.words import first_few, pasted, several, size

_PLAIN_DIM = re.compile(r"[\w.]+")
_LONGEST_SUM = 80
"""Longest sum of multiply-adds, in characters, that is shown in one line; a longer sum is a table. A choice: a
terminal's width."""


@dataclass(frozen=True)
class DataFile:
    """A file of external data. `tensors` and `bytes` count the model's tensors in it. `file_bytes` is the size of the
    file, None if it is missing."""

    location: str
    tensors: int
    bytes: int
    file_bytes: int | None


@dataclass(frozen=True)
class Port:
    """A graph input or output. `type` is its dtype and shape; `default` says whether it has a default value."""

    name: str
    type: str
    default: bool = False


@dataclass(frozen=True)
class Weights:
    """The stored tensors of one dtype. `where` is `initializers` or `constants` (`Constant` nodes)."""

    where: str
    dtype: str
    tensors: int
    elements: int
    bytes: int


@dataclass(frozen=True)
class Function:
    """A function of the model; `calls` counts the nodes that call it."""

    name: str
    inputs: int
    outputs: int
    nodes: int
    calls: int


@dataclass(frozen=True)
class Module:
    """The number of nodes, without `Constant`, that come from one torch module. `name` is "" for nodes without a
    module."""

    name: str
    nodes: int


@dataclass(frozen=True)
class MacTerm:
    """`count` times the product of the `dims`, which are symbols or expressions of the inputs' sizes."""

    count: int
    dims: tuple[str, ...]

    def __str__(self) -> str:
        return " · ".join([f"{self.count:,}", *self.factors()])

    def factors(self) -> list[str]:
        """Returns the dims; an expression gets parentheses."""
        return [dim if _PLAIN_DIM.fullmatch(dim) else f"({dim})" for dim in self.dims]


@dataclass(frozen=True)
class Macs:
    """Multiply-accumulates of one run: the sum of `terms`, over the `counted` convolutions and matrix products of the
    graph. Left out: nodes of `unknown_shape`, nodes `nested` in branches, bodies and functions (the number of runs is
    unknown), and `other` operators without a rule for their count, by operator."""

    terms: tuple[MacTerm, ...]
    counted: int
    unknown_shape: int
    nested: int
    other: dict[str, int]

    def total(self) -> str:
        """Returns the sum as one line; "" when nothing was counted."""
        return " + ".join(str(term) for term in self.terms)

    def left_out(self) -> str:
        """Returns the nodes that the sum leaves out."""
        texts = [
            several(self.unknown_shape, "node") + " of unknown shape" if self.unknown_shape else "",
            several(self.nested, "node") + " in branches, bodies or functions" if self.nested else "",
            *(f"{count} {op}" for op, count in self.other.items()),
        ]
        return ", ".join(text for text in texts if text)


@dataclass(frozen=True)
class ModelSummary(Part):
    """The outline of a model.

    `path` is "" and `bytes` None for a model in memory. `nodes` includes subgraphs and functions, but not `Constant`
    nodes, which `constant_nodes` counts. `parameters` are the elements of weights, as `--costs` counts them: no
    integers such as shapes. `nesting` is the depth of subgraphs, 0 without any. `operators` counts every node by
    operator, the most frequent first. `foreign` lists operators, by domain, that neither ONNX nor the model defines.
    `missing` lists the tensors whose values cannot be read.
    """

    title = "Model"

    path: str
    bytes: int | None
    data_files: tuple[DataFile, ...]
    producer: str
    ir_version: int
    opsets: dict[str, int]
    model_version: int | None
    domain: str
    graph: str
    doc: str
    metadata: dict[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    weights: tuple[Weights, ...]
    missing: tuple[str, ...]
    nodes: int
    subgraphs: int
    nesting: int
    operators: dict[str, int]
    functions: tuple[Function, ...]
    foreign: dict[str, tuple[str, ...]]
    macs: Macs
    modules: tuple[Module, ...]
    parameters: int = 0
    constant_nodes: int = 0

    @property
    def elements(self) -> int:
        """The number of elements in all stored tensors."""
        return sum(group.elements for group in self.weights)

    def blocks(self) -> Iterator[Block]:
        yield self._outline()
        if self.missing:
            named = first_few(self.missing, 3)
            yield Text(f"{several(len(self.missing), 'tensor')} without values: {named}", Tone.WARN)
        yield Table(("", "name", "type", ""), tuple(self._port_rows()))
        if self.weights:
            yield Table(("weights in", "dtype", "tensors", "elements", "size"), self._weight_rows(), right=(2, 3, 4))
        yield Table(("operator", "nodes"), tuple((op, f"{n:,}") for op, n in self.operators.items()), right=(1,))
        if self.functions:
            yield Table(("function", "inputs", "outputs", "nodes", "calls"), self._function_rows(), right=(1, 2, 3, 4))
        if not self._short_sum():
            terms = tuple((f"{term.count:,}", " · ".join(term.factors())) for term in self.macs.terms)
            yield Table(("multiply-adds", "times"), terms, right=(0,))
        if self.modules:
            modules = tuple((m.name or "(none)", f"{m.nodes:,}") for m in self.modules)
            yield Table(("torch module", "nodes"), modules, right=(1,))
        yield from metadata(self.metadata)

    def _outline(self) -> Facts:
        inside = several(self.subgraphs, "subgraph")
        return facts(
            [
                ("file", self.path),
                ("size", None if self.bytes is None else size(self.bytes)),
                *(("external data", _data_file(file)) for file in self.data_files),
                ("producer", self.producer),
                ("IR version", self.ir_version),
                ("opsets", ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in self.opsets.items())),
                ("model version", self.model_version or None),
                ("domain", self.domain),
                ("graph", self.graph),
                ("description", self.doc),
                ("nodes", f"{self.nodes:,}"),
                ("Constant nodes", f"{self.constant_nodes:,} more" if self.constant_nodes else None),
                ("parameters", f"{self.parameters:,}"),
                ("subgraphs", f"{inside}, nested {self.nesting} deep" if self.subgraphs else None),
                *((f"foreign domain {domain}", ", ".join(ops)) for domain, ops in self.foreign.items()),
                ("multiply-adds", self.macs.total() if self._short_sum() else None),
                ("not counted in them" if self.macs.counted else "multiply-adds not counted", self.macs.left_out()),
            ]
        )

    def _short_sum(self) -> bool:
        return len(self.macs.total()) <= _LONGEST_SUM

    def _weight_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple((w.where, w.dtype, f"{w.tensors:,}", f"{w.elements:,}", size(w.bytes)) for w in self.weights)

    def _function_rows(self) -> tuple[tuple[str, ...], ...]:
        return tuple((f.name, f"{f.inputs}", f"{f.outputs}", f"{f.nodes:,}", f"{f.calls:,}") for f in self.functions)

    def _port_rows(self) -> Iterator[tuple[str, ...]]:
        for port in self.inputs:
            yield "input", port.name, port.type, "has a default" if port.default else ""
        for port in self.outputs:
            yield "output", port.name, port.type, ""


def _data_file(file: DataFile) -> str:
    there = "not there" if file.file_bytes is None else f"{size(file.file_bytes)} file"
    return f"{file.location}: {size(file.bytes)} in {several(file.tensors, 'tensor')}, {there}"


_MOST_ROWS = 40
"""Rows in a terminal. A choice: about a screen; deeper modules are left out first."""
_LONGEST = 44
"""Characters of the longest formula in a table; a longer one is only in JSON. A choice: a terminal's width."""
_TITLES = {"module": "torch module", "scope": "scope in node names", "operator": "operator"}


@dataclass(frozen=True)
class Amount:
    """A number for the report's sizes, `at`, and its formula: the sum of `terms`; None if that is too long. It is a
    guess if a size in it is an example, which neither the user gave nor a run showed."""

    at: int
    terms: tuple[MacTerm, ...] | None
    is_guess: bool = False

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
            yield Text(f"not counted in the memory: {several(self.unsized, 'tensor')} of unknown size", Tone.WARN)
        for line in self.assumptions:
            yield Text(line)
        if any(one.is_guess for row in self.rows for one in (row.macs, row.activations)):
            names = list(self.examples)
            given = f"--dim {pasted(names[0])}={self.sizes[names[0]]}"
            yield Text(
                f"~ marks numbers for the example size of {first_few(names, 3)}; set your sizes, for example {given}"
            )
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
            macs = f"{_mark(row.macs)}{row.macs.at:,}"
            cells: tuple[str, ...] = (name, f"{row.nodes:,}", macs, f"{row.parameters:,}")
            cells += (f"{_mark(row.activations)}{size(row.activations.at)}",)
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


def _mark(found: Amount) -> str:
    return "~" if found.is_guess else ""


def _told(found: Amount, number: str, unit: str = "") -> str:
    number = f"{_mark(found)}{number}"
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
