"""What stands between a torch module and a file that can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from onnxsmith.problem import Problem
from onnxsmith.report.base import Block, Facts, Part, Table, Text, Tone


class Weight(StrEnum):
    """What a finding means for an export."""

    STOPS = "stops"
    """No graph comes of it."""
    WRONG = "wrong"
    """A graph comes of it that does something else than the module."""
    NOTE = "note"
    """The graph is right; what differs is said."""


@dataclass(frozen=True)
class Finding:
    """One problem. `said` is what torch says of it, `source` the user's line as it stands, `rung` the cheapest step
    that helps: opset, recompose, register, edit. `code` goes in the place of the lines `first` to `last` of the file
    that `problem.where` names, or behind `last` where `first` is the line after it; it is empty where no code could be
    written."""

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
    """What became of one dynamic axis: kept, or the constant it was fixed to, with the line; together with all others,
    and by itself."""

    port: str
    axis: int
    name: str
    together: str
    alone: str


@dataclass(frozen=True)
class Diagnosis(Part):
    """Every problem that was found, which axes stay open, and what each way to capture came to."""

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
            if finding.code and (file, finding.first) not in shown:
                shown.add((file, finding.first))
                yield Text(f"{_place(finding, file)}:")
                yield Text(finding.code, verbatim=True)


def _place(finding: Finding, file: str) -> str:
    """Where the code goes."""
    if not finding.first:
        return "for example"
    if finding.first > finding.last:
        return f"behind line {finding.last} of {file}, the last"
    one = finding.first == finding.last
    lines = f"line {finding.first}" if one else f"lines {finding.first} to {finding.last}"
    return f"in the place of {lines} of {file}"
