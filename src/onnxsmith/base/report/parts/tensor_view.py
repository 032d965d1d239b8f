"""All facts about one tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Text, Tone, facts
from onnxsmith.base.report.parts._text import metadata, number, size
from onnxsmith.base.report.parts.tensor_table import Statistics
from onnxsmith.base.words import several


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
