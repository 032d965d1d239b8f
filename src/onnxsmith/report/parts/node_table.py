"""Every node of a model, one a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.report.base import Block, Part, Table


@dataclass(frozen=True)
class Operand:
    """A tensor that a node reads or makes; `type` is its dtype and shape, "" when unknown. "" as name: left out."""

    name: str
    type: str


@dataclass(frozen=True)
class NodeRow:
    """A node. `scope` is "" in the model's graph, else the path of its branch, body or function, `depth` graphs inside.

    `module` is the torch module it comes from and `source` its line, as `file:line`; both "" when not known.
    """

    index: int
    scope: str
    depth: int
    name: str
    op: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    module: str
    source: str


@dataclass(frozen=True)
class NodeTable(Part):
    """The nodes in the file's order; those of a branch or body follow their owner, functions come last."""

    title = "Nodes"

    rows: tuple[NodeRow, ...]

    def blocks(self) -> Iterator[Block]:
        nested = any(row.scope for row in self.rows)
        traced = any(row.module or row.source for row in self.rows)
        head: tuple[str, ...] = ("#", "node", "operator", "inputs", "outputs")
        head += ("in",) * nested + ("torch module", "source") * traced
        rows = []
        for row in self.rows:
            cells = (
                str(row.index),
                "  " * row.depth + row.name,
                row.op,
                ", ".join(operand.name or "-" for operand in row.inputs),
                ", ".join(f"{operand.name} {operand.type}".strip() or "-" for operand in row.outputs),
            )
            rows.append(cells + (row.scope,) * nested + (row.module, row.source) * traced)
        yield Table(head, tuple(rows), right=(0,))
