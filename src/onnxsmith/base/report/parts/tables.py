"""Tables of the nodes and of the tensors of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone
from onnxsmith.base.report.parts._text import dims, number, size
from onnxsmith.base.words import several


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


@dataclass(frozen=True)
class Statistics:
    """Statistics of a tensor. `min`, `max`, `mean` and `std` (population) are over the finite elements. They are None
    if there are no finite elements, or if the dtype has no order. For a complex tensor they are of the absolute values,
    for a boolean tensor of 0 and 1. `zero` counts 0.0 and -0.0. A complex element is NaN or infinite if one of its
    parts is."""

    min: int | float | None
    max: int | float | None
    mean: float | None
    std: float | None
    nan: int
    inf: int
    zero: int

    def oddities(self) -> str:
        """Returns the counts of NaN, infinity and zero, without those that are 0."""
        counted = ((self.nan, "NaN"), (self.inf, "Inf"), (self.zero, "zero"))
        return ", ".join(f"{count:,} {what}" for count, what in counted if count)


@dataclass(frozen=True)
class TensorRow:
    """A tensor. `kind` is `initializer` or `constant`; `where` is `inline`, `external FILE` or `missing`.

    `statistics` is None for strings, and for values that could not be read; `trouble` then says why.
    """

    name: str
    scope: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    where: str
    statistics: Statistics | None
    trouble: str = ""


@dataclass(frozen=True)
class TensorTable(Part):
    """The initializers of a model, and the constants of `Constant` nodes with at least `smallest` elements. `skipped`
    counts the smaller constants."""

    title = "Tensors"

    rows: tuple[TensorRow, ...]
    smallest: int
    skipped: int

    def blocks(self) -> Iterator[Block]:
        head: tuple[str, ...] = ("tensor", "dtype", "shape", "size", "where", "min", "max", "mean", "std", "")
        nested = any(row.scope for row in self.rows)
        rows = (_cells(row) + (row.scope,) * nested for row in self.rows)
        places = (Places(0, "tensor", tuple(row.name for row in self.rows)),)
        yield Table(head + ("in",) * nested, tuple(rows), right=(3, 5, 6, 7, 8), places=places)
        if self.skipped:
            constants = several(self.skipped, "Constant node")
            yield Text(f"{constants} of fewer than {self.smallest} elements left out")
        for row in self.rows:
            if row.trouble:
                yield Text(f"{row.name}: {row.trouble}", Tone.WARN)


def _cells(row: TensorRow) -> tuple[str, ...]:
    stats = row.statistics
    values = ("", "", "", "", "")
    if stats is not None:
        values = (number(stats.min), number(stats.max), number(stats.mean), number(stats.std), stats.oddities())
    where = row.where if row.kind == "initializer" else f"{row.kind}, {row.where}"
    return (row.name, row.dtype, dims(row.shape), size(row.bytes), where, *values)
