"""Describes what `inspect` shows: one node, operator or tensor, tables of all of them, and a model as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import dims, metadata, number
from onnxsmith.base.words import several, size


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


@dataclass(frozen=True)
class Slot:
    """An input or output of a node. `formal` is its name in the operator's schema. `name` is the tensor's name, "" if
    omitted. `others` has the producer of an input, or the readers of an output."""

    formal: str
    name: str
    type: str
    others: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    """An attribute; `given` is False if the node uses the schema's default."""

    name: str
    type: str
    value: str
    given: bool


@dataclass(frozen=True)
class NodeView(Part):
    """A node.

    `opset` is the version of its domain that the model imports, None without an import. `since` is the version that
    introduced this form of the operator, `newest` the version of its latest form; both are None if onnx has no schema.
    """

    title = "Node"

    name: str
    index: int
    scope: str
    op: str
    domain: str
    opset: int | None
    since: int | None
    newest: int | None
    deprecated: bool
    function: bool
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    attributes: tuple[Attribute, ...]
    module: str
    source: str
    torch_op: str
    doc: str
    metadata: dict[str, str]

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("node", self.name),
                ("number", self.index),
                ("in", self.scope),
                ("operator", self.op),
                ("domain", self.domain or "ai.onnx"),
                ("opset", self.opset),
                ("schema", self._schema()),
                ("torch module", self.module),
                ("torch operator", self.torch_op),
                ("source", self.source),
                ("description", self.doc),
            ]
        )
        rows = tuple((s.formal, s.name or "-", s.type, "; ".join(s.others)) for s in self.inputs)
        yield Table(("input", "tensor", "type", "from"), rows)
        rows = tuple((s.formal, s.name or "-", s.type, "; ".join(s.others)) for s in self.outputs)
        yield Table(("output", "tensor", "type", "read by"), rows)
        if self.attributes:
            rows = tuple((a.name, a.type, a.value, "" if a.given else "default") for a in self.attributes)
            yield Table(("attribute", "type", "value", ""), rows)
        yield from metadata(self.metadata)

    def _schema(self) -> str:
        if self.function:
            return "a function of the model"
        if self.since is None:
            return "none at this opset in the installed onnx"
        newer = f"; the newest form is of {self.newest}" if self.newest != self.since else ""
        return f"since version {self.since}{', deprecated' if self.deprecated else ''}{newer}"


@dataclass(frozen=True)
class FormalOperand:
    """A formal input or output. `kind` is required, optional or variadic. `variable` is its type variable."""

    name: str
    kind: str
    variable: str
    types: tuple[str, ...]


@dataclass(frozen=True)
class FormalAttribute:
    """An attribute of the schema; `default` is "" without a default."""

    name: str
    type: str
    required: bool
    default: str


@dataclass(frozen=True)
class Change:
    """The change of an operator at an opset version."""

    version: int
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """CPU kernels of a runtime for the opset versions from `first` to `last` (None: the newest). `types` has, for each
    type variable, all types that some kernel takes; not every combination exists."""

    first: int
    last: int | None
    types: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class OperatorView(Part):
    """An operator of the ONNX specification.

    `since` is the first opset version with the operator, `version` that of the form shown. `kernels` are the kernels of
    `runtime`, None if they are unknown. `example` is a program that was run, "" if there is none. `doc` is the text of
    the specification on the operator, `summary` its first sentences.
    """

    title = "Operator"

    name: str
    domain: str
    since: int
    version: int
    deprecated: bool
    inputs: tuple[FormalOperand, ...]
    outputs: tuple[FormalOperand, ...]
    attributes: tuple[FormalAttribute, ...]
    history: tuple[Change, ...]
    runtime: str
    kernels: tuple[Kernel, ...] | None
    example: str
    doc: str = ""
    summary: str = ""

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("operator", self.name),
                ("domain", self.domain or "ai.onnx"),
                ("since opset", self.since),
                ("shown form", f"of opset {self.version}{', deprecated' if self.deprecated else ''}"),
            ]
        )
        if self.doc:
            is_short = " ".join(self.doc.split()) == self.summary
            yield Text(self.summary) if is_short else Text(self.doc, verbatim=True, shorter=self.summary)
        for word, operands in (("input", self.inputs), ("output", self.outputs)):
            if operands:
                yield Table((word, "", "type", "types"), tuple(_row(one) for one in operands))
        if self.attributes:
            rows = tuple((a.name, a.type, "required" if a.required else a.default) for a in self.attributes)
            yield Table(("attribute", "type", "default"), rows)
        yield Table(("opset", "change"), tuple((str(one.version), "; ".join(one.changes)) for one in self.history))
        if self.kernels:
            yield Table((f"{self.runtime} CPU kernels", "types"), tuple(_kernel_row(one) for one in self.kernels))
        if self.example:
            yield Text(self.example, verbatim=True)


def _row(one: FormalOperand) -> tuple[str, ...]:
    return one.name, one.kind, one.variable, ", ".join(one.types)


def _kernel_row(one: Kernel) -> tuple[str, ...]:
    span = f"opset {one.first} and later" if one.last is None else f"opset {one.first} to {one.last}"
    return span, "; ".join(f"{variable}: {', '.join(types)}" for variable, types in one.types.items())


@dataclass(frozen=True)
class TensorView(Part):
    """A tensor, the node that computes it and the nodes that read it. `roles` are any of: graph input, graph output,
    initializer, constant, made by a node.

    `where`, `bytes`, `statistics` and `values` are for stored tensors only. `values` are the first elements in
    row-major order, written so that they read back exactly; `elements` counts all elements.
    """

    title = "Tensor"

    name: str
    scope: str
    roles: tuple[str, ...]
    type: str
    producer: str
    consumers: tuple[str, ...]
    doc: str
    metadata: dict[str, str]
    where: str
    bytes: int | None
    elements: int | None
    statistics: Statistics | None
    values: tuple[str, ...]
    trouble: str = ""

    def blocks(self) -> Iterator[Block]:
        stats = self.statistics
        yield facts(
            [
                ("tensor", self.name),
                ("in", self.scope),
                ("is", ", ".join(self.roles)),
                ("type", self.type or "unknown"),
                ("made by", self.producer),
                ("read by", "; ".join(self.consumers) or "nothing"),
                ("description", self.doc),
                ("values", self.where),
                ("size", None if self.bytes is None else size(self.bytes)),
                *(() if stats is None else _statistics(stats)),
            ]
        )
        if self.trouble:
            yield Text(self.trouble, Tone.WARN)
        if self.values:
            left = (self.elements or 0) - len(self.values)
            more = f"\n… {several(left, 'more element')}" if left > 0 else ""
            yield Text(", ".join(self.values) + more, verbatim=True)
        yield from metadata(self.metadata)


def _statistics(stats: Statistics) -> Iterator[tuple[str, object]]:
    yield "min", number(stats.min)
    yield "max", number(stats.max)
    yield "mean", number(stats.mean)
    yield "std", number(stats.std)
    yield "among them", stats.oddities()


@dataclass(frozen=True)
class ModelText(Part):
    """The model as ONNX text, without the values of its initializers."""

    title = "Text"

    text: str

    def blocks(self) -> Iterator[Block]:
        yield Text(self.text, verbatim=True)
