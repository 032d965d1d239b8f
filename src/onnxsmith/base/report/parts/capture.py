"""Describes an export: the captured graph, the program that it came from, and the problems that were met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Facts, Part, Table, Text, Tone, facts
from onnxsmith.base.words import first_few, several, shortened

_PORTS = 3
"""Inputs and outputs that one line names. A choice."""


@dataclass(frozen=True)
class PortMap:
    """One input or output of the graph. `argument` is its place in the arguments (or the result) of `forward`."""

    name: str
    argument: str
    dtype: str
    shape: tuple[int | str, ...]
    dynamic: tuple[str, ...]
    fixed: tuple[str, ...]
    used: bool = True


@dataclass(frozen=True)
class Capture(Part):
    """The captured graph and the way it was captured. `opset_asked` is None when the user chose no opset."""

    title = "Capture"

    target: str
    how: str
    inputs: tuple[PortMap, ...]
    outputs: tuple[PortMap, ...]
    constants: tuple[str, ...]
    opset_asked: int | None
    opset_got: int
    opset_how: str
    ir_version: int
    captured_sizes: dict[str, int]
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()

    def line(self) -> str:
        inputs, outputs = _named(self.inputs), _named(self.outputs)
        rest = [f"constants: {', '.join(self.constants)}"] if self.constants else []
        rest += [f"dropped inputs: {', '.join(self.dropped)}"] if self.dropped else []
        return "; ".join([f"opset {self.opset_got}, {inputs} → {outputs}", *rest])

    def blocks(self) -> Iterator[Block]:
        asked = " (default)" if self.opset_asked is None else ""
        if self.opset_asked is not None and self.opset_asked != self.opset_got:
            asked = f", asked for {self.opset_asked}"
        rows = [
            ("model", self.target),
            ("captured by", self.how),
            ("opset", f"{self.opset_got}{asked}{', ' + self.opset_how if self.opset_how else ''}"),
            ("IR version", str(self.ir_version)),
        ]
        if self.captured_sizes:
            rows.append(("captured at", ", ".join(f"{name}={size}" for name, size in self.captured_sizes.items())))
        yield Facts(tuple(rows))
        for what, ports in (("input", self.inputs), ("output", self.outputs)):
            yield Table(
                (what, "of forward", "dtype and shape", "dynamic axes", "fixed axes"),
                tuple(
                    (p.name, p.argument, _typed(p), ", ".join(p.dynamic) or "none", ", ".join(p.fixed) or "none")
                    for p in ports
                ),
            )
        if self.constants:
            yield Text(f"constants of this export: {', '.join(self.constants)}")
        if self.dropped:
            yield Text(f"unused inputs that were dropped: {', '.join(self.dropped)}")
        for port in self.inputs:
            if not port.used:
                yield Text(f"input {port.name!r} is kept, but nothing in the graph reads it", Tone.WARN)
        yield from (Text(f"tried, failed: {failure}", Tone.WARN) for failure in self.tried)
        for note in self.notes:
            said, _, code = note.partition("\n")
            yield Text(said, Tone.WARN)
            if code:  # such as the lines that were traced in place of the user's
                yield Text(code, verbatim=True)


def _named(ports: tuple[PortMap, ...]) -> str:
    return first_few([f"{port.name} {_typed(port)}" for port in ports], _PORTS)


def _typed(port: PortMap) -> str:
    return f"{port.dtype}[{','.join(map(str, port.shape))}]"


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


class Weight(StrEnum):
    """The effect of a finding on an export."""

    STOPS = "stops"
    """The export fails."""
    WRONG = "wrong"
    """The exported graph computes something else than the module."""
    NOTE = "note"
    """The graph is right, with a difference that the finding names."""


@dataclass(frozen=True)
class Finding:
    """One problem of the module.

    `said` is torch's message, `source` the user's line. `rung` is the cheapest remedy: opset, recompose, register or
    edit. `code` replaces the lines `first` to `last` of the file in `problem.where`; if `first` is `last` + 1, it is
    inserted after `last`. `code` is empty if the remedy has no code.
    """

    problem: Problem
    weight: Weight
    rung: str
    said: str = ""
    source: str = ""
    code: str = ""
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class Axis:
    """The outcome for one dynamic axis: kept, fixed to a constant by a line of the source, or not known, because the
    trace stopped. `together` is the outcome with all axes dynamic, `alone` with only this axis dynamic."""

    port: str
    axis: int
    name: str
    together: str
    alone: str


@dataclass(frozen=True)
class Diagnosis(Part):
    """All problems found, the outcome for each dynamic axis, and the outcome of each capture strategy in `ways`."""

    title = "Diagnosis"

    target: str
    findings: tuple[Finding, ...]
    axes: tuple[Axis, ...]
    ways: tuple[tuple[str, str], ...]

    def blocks(self) -> Iterator[Block]:
        yield Facts((("model", self.target), *self.ways))
        if self.axes:
            yield Table(
                ("input", "axis", "name", "all axes dynamic", "this one alone"),
                tuple((a.port, str(a.axis), a.name, a.together, a.alone) for a in self.axes),
            )
        if self.findings:
            yield Table(
                ("where", "problem", "means", "rung"),
                tuple((f.problem.where, f.problem.id, f.weight.value, f.rung) for f in self.findings),
            )
        shown: set[tuple[str, int]] = set()
        for finding in self.findings:
            if finding.said:
                yield Text(f"{finding.problem.where or finding.problem.id}: {finding.said}", Tone.PLAIN)
            file = finding.problem.where.rpartition(":")[0]
            is_in_fix = finding.code in finding.problem.fix
            if finding.code and not is_in_fix and (file, finding.first) not in shown:
                shown.add((file, finding.first))
                yield Text(f"{_place(finding, file)}:")
                yield Text(finding.code, verbatim=True)


def _place(finding: Finding, file: str) -> str:
    """Names the lines that the code replaces or follows."""
    if not finding.first:
        return "for example"
    if finding.first > finding.last:
        return f"after line {finding.last} of {file}, its last line"
    one = finding.first == finding.last
    lines = f"line {finding.first}" if one else f"lines {finding.first} to {finding.last}"
    return f"instead of {lines} of {file}"
