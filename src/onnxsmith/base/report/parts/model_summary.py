"""An outline of a model, on one page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Facts, Part, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import metadata, size
from onnxsmith.base.words import first_few, several

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

    `path` is "" and `bytes` None for a model in memory. `nodes` includes subgraphs and functions, but not `Constant`.
    `nesting` is the depth of subgraphs, 0 without any. `operators` counts every node by operator, the most frequent
    first. `foreign` lists operators, by domain, that neither ONNX nor the model defines. `missing` lists the tensors
    whose values cannot be read.
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
