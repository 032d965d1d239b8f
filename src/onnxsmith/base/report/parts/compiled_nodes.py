"""Describes the nodes of a model that an execution provider has compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text, Tone, facts
from onnxsmith.base.words import first_few, several, size

_SHOWN = 5
"""Limits the operators that are listed. A choice: one line."""


@dataclass(frozen=True)
class CompiledNode:
    """A node that holds compiled code (`EPContext`). `provider` is the program that compiled it, `sdk` the version of
    its SDK, `hardware` what it was compiled for, `partition` its name there; each is "" if the file does not say.

    `file` is the file with the code, "" if the code is in the node or in another node. `bytes` is the size of the code,
    None if it is not at hand. `missing` says why."""

    node: str
    provider: str
    sdk: str
    hardware: str
    partition: str
    file: str
    bytes: int | None
    missing: str = ""


@dataclass(frozen=True)
class CompiledNodes(Part):
    """All compiled nodes, and how many nodes of each operator are left for a runtime. `source` is the file from which
    the model was compiled, as the nodes name it, "" if they do not. `source_state` says whether it is beside the model,
    and has the same inputs and outputs."""

    title = "Compiled nodes"

    nodes: tuple[CompiledNode, ...]
    left: dict[str, int]
    source: str = ""
    source_state: str = ""

    def blocks(self) -> Iterator[Block]:
        head = ("node", "compiled by", "SDK", "hardware", "partition", "code in", "size")
        rows = tuple(
            (
                one.node,
                one.provider or "not said",
                one.sdk,
                one.hardware,
                one.partition,
                one.file or ("another node" if one.bytes is None else "the node"),
                "" if one.bytes is None else size(one.bytes),
            )
            for one in self.nodes
        )
        yield Table(head, rows, right=(6,), is_key=True)
        count = sum(self.left.values())
        named = first_few([f"{number} {op}" for op, number in self.left.items()], _SHOWN)
        left = f"{several(count, 'node')}: {named}" if count else "no node"
        source = f"{self.source} ({self.source_state})" if self.source else ""
        yield facts((("left for the runtime", left), ("compiled from", source)))
        for one in self.nodes:
            if one.missing:
                yield Text(f"{one.node}: {one.missing}", Tone.WARN)
