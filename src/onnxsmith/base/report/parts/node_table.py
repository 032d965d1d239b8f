"""All nodes of a model, one per line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table


@dataclass(frozen=True)
class Operand:
    """An input or output of a node. `type` is its dtype and shape, "" if unknown. An omitted operand has the name
    ""."""

    name: str
    type: str


@dataclass(frozen=True)
class NodeRow:
    """A node. `scope` is "" in the main graph, otherwise the path of its branch, body or function; `depth` is the depth
    of that graph. `module` is its torch module, `source` its source line as `file:line`; both are "" if unknown.
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
    """The nodes in the order of the file. The nodes of a branch or body follow their owner; functions come last."""

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
        places = (Places(1, "node", tuple(row.name for row in self.rows)),)
        yield Table(head, tuple(rows), right=(0,), places=places)
