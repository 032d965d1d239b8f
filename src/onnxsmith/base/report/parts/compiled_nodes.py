"""Describes the nodes of a model that an execution provider has compiled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Part, Table, Text, Tone, facts
from onnxsmith.base.words import first_few, listed, pasted, several, size

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
    and has the same inputs and outputs. `source_path` is its path if it is and has."""

    title = "Compiled nodes"

    nodes: tuple[CompiledNode, ...]
    left: dict[str, int]
    source: str = ""
    source_state: str = ""
    source_path: str = ""

    @property
    def lost(self) -> tuple[str, ...]:
        """Returns what is missing of the code."""
        return tuple(one.missing for one in self.nodes if one.missing)

    @property
    def providers(self) -> str:
        """Returns the names of the programs that compiled the nodes, each with its SDK and hardware."""
        return ", ".join(dict.fromkeys(_made_by(one) for one in self.nodes))

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


def _made_by(one: CompiledNode) -> str:
    told = ", ".join([f"SDK {one.sdk}"] * bool(one.sdk) + [f"for hardware {one.hardware}"] * bool(one.hardware))
    return f"{one.provider or 'a provider that the file does not name'}{f' ({told})' if told else ''}"


def problem_of(part: CompiledNodes, where: str, why: str) -> Problem:
    """Returns the problem of a model whose code no program at hand can run. `why` says which programs those are."""
    names = listed(one.node for one in part.nodes[:_SHOWN])
    named = f", {listed([part.source])}" if part.source else ""
    if part.source_path:
        ask = f"check the model that it was compiled from: `onnxsmith check {pasted(part.source_path)}`"
    else:
        ask = f"get the model that it was compiled from{named}, and check that one"
    return Problem(
        "target/compiled",
        f"{where} holds code that {part.providers} compiled",
        where=names,
        why="; ".join(filter(None, (why, *part.lost))),
        fix=f"{ask}; compile it again for another provider, device or SDK",
    )
