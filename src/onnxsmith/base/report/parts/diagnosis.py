"""The problems that keep a torch module from becoming a correct ONNX file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Facts, Part, Table, Text, Tone


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
    """The outcome for one dynamic axis: kept, or fixed to a constant by a line of the source. `together` is the outcome
    with all axes dynamic, `alone` with only this axis dynamic."""

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
            if finding.code and (file, finding.first) not in shown:
                shown.add((file, finding.first))
                yield Text(f"{_place(finding, file)}:")
                yield Text(finding.code, verbatim=True)


def _place(finding: Finding, file: str) -> str:
    """Names the lines that the code replaces or follows."""
    if not finding.first:
        return "for example"
    if finding.first > finding.last:
        return f"after line {finding.last} of {file}, the last"
    one = finding.first == finding.last
    lines = f"line {finding.first}" if one else f"lines {finding.first} to {finding.last}"
    return f"instead of {lines} of {file}"
