"""All facts about one node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, facts
from onnxsmith.base.report.parts._text import metadata


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
            return "none in the installed onnx"
        newer = f"; the newest form is of {self.newest}" if self.newest != self.since else ""
        return f"since version {self.since}{', deprecated' if self.deprecated else ''}{newer}"
