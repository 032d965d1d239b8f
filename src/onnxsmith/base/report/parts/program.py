"""The program that a model was exported from, with the nodes that came from each line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text, facts
from onnxsmith.base.words import first_few, several, shortened

_MOST_ROWS = 60
"""Rows in a terminal. A choice: two screens."""
_COLUMNS = ("source", "code", "program", "nodes")
_LONGEST = 72
"""Characters of a line of the program in a table; JSON has it whole. A choice: half a terminal."""


@dataclass(frozen=True)
class ProgramNode:
    """A node of the model. `scope` is "" in the main graph. `pairing` says how its line was found: by the `name` of the
    operation, by its `source` line, or by its `module`. A module may have several lines; the node is then at the first.
    If a rewrite made the node from several operations, it is at the line of each: once as itself, elsewhere as
    `merged`."""

    name: str
    op: str
    scope: str
    pairing: str


@dataclass(frozen=True)
class ProgramLine:
    """An operation of the program. `text` is "" if the model names only its source line. `source` is the user's line as
    `file:line` and `code` its text; `module` is the torch module. All three are "" if unknown. `depth` counts the
    blocks around the line."""

    name: str
    text: str
    source: str
    code: str
    module: str
    depth: int
    nodes: tuple[ProgramNode, ...]


@dataclass(frozen=True)
class Program(Part):
    """The lines of a program, in order. `origin` is `torch.export`, `TorchScript`, or `the model` if the lines were
    read from the metadata of its nodes. `unpaired` are the nodes without a line. `compared` is whether there is a
    model."""

    title = "Program"

    origin: str
    lines: tuple[ProgramLine, ...]
    unpaired: tuple[ProgramNode, ...]
    compared: bool

    @property
    def paired(self) -> int:
        """The number of nodes that have a line; a node with several lines counts once."""
        return sum(node.pairing != "merged" for line in self.lines for node in line.nodes)

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("from", self.origin),
                ("lines", f"{len(self.lines):,}"),
                ("nodes beside them", f"{self.paired:,}" if self.compared else None),
                ("nodes of no line", _listed(self.unpaired) if self.unpaired else None),
            ]
        )
        if not self.lines:
            yield Text("the program has no operations")
            return
        shown = {
            "code": any(line.code for line in self.lines),
            "program": any(line.text for line in self.lines),
            "nodes": self.compared,
        }
        head = tuple(name for name in _COLUMNS if shown.get(name, True))
        rows: list[tuple[str, ...]] = []
        before = ""
        for line in self.lines:
            again = line.source == before and bool(before)
            before = line.source
            place = ("", "") if again else (line.source, shortened(line.code, _LONGEST))
            cells = (*place, "  " * line.depth + shortened(line.text, _LONGEST), ", ".join(map(_node, line.nodes)))
            rows.append(tuple(cell for name, cell in zip(_COLUMNS, cells, strict=True) if name in head))
        first = tuple(range(_MOST_ROWS)) if len(rows) > _MOST_ROWS else None
        yield Table(head, tuple(rows), rows_in_terminal=first)


def _node(node: ProgramNode) -> str:
    shown = f"{node.name} ({node.op})" if node.name else node.op
    return f"part of {shown}" if node.pairing == "merged" else shown


def _listed(nodes: tuple[ProgramNode, ...]) -> str:
    return f"{several(len(nodes), 'node')}: {first_few([_node(node) for node in nodes], 3)}"
