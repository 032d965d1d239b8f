"""The stage that each target reached with a model, and with each of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone
from onnxsmith.base.words import several


class Stage(StrEnum):
    """The stage that a target reached. A stage includes those before it."""

    NOT_TRIED = "not tried"
    REFUSED = "refused"
    FITS = "fits the table"
    PARSED = "parsed"
    BUILT = "built"
    RAN = "ran"
    AGREED = "agreed"


_FEW = 3
"""Largest number of targets for which the notes of tables are shown. A choice: a page of notes hides the results."""


@dataclass(frozen=True)
class NodeCheck:
    """A node that stopped a target, or about which nothing is known. `place` is the torch module and source line, if
    the file names them. `evidence` says how the node was found. `rewrite` names a rewrite that helps, "" for none."""

    node: str
    op: str
    stage: Stage
    why: str
    place: str = ""
    evidence: str = ""
    rewrite: str = ""


@dataclass(frozen=True)
class TargetCheck:
    """The result of one target.

    `judge` is False if no software was asked, and the result follows from tables and rules. `shapes` gives the sizes
    for which the stage was reached: `dynamic`, or the sizes that were fixed. `counts` are the numbers of nodes by
    stage; `nodes` are those that are refused, disagree or are unknown.
    """

    target: str
    title: str
    version: str
    judge: bool
    stage: Stage
    why: str = ""
    shapes: str = "dynamic"
    counts: dict[str, int] | None = None
    nodes: tuple[NodeCheck, ...] = ()
    notes: tuple[str, ...] = ()
    whole: bool = False
    """Whether the target refuses the file as a whole: its opset, its IR version, its interface."""
    complete: bool = True
    """Whether every refused node is in `nodes`."""
    expected: str = ""
    """The stage that a profile of the target's name predicts; "" without such a profile."""
    rewrite: str = ""
    """The rewrite of a copy of the model that the target takes; "" if none was found."""
    changed: str = ""
    """The change that let the target reach `stage`; "" if nothing was changed. The target refuses the unchanged
    file."""
    as_it_is: str = ""
    """Why the target refuses the unchanged file, if something was changed."""
    symbols: str = ""
    """Why the target takes the file only at the fixed sizes in `shapes`."""


@dataclass(frozen=True)
class TargetChecks(Part):
    """A row for each target, then the nodes that stopped it."""

    title: ClassVar[str] = "Targets"

    checks: tuple[TargetCheck, ...]

    def blocks(self) -> Iterator[Block]:
        rows = tuple(
            (one.target, one.version, "asked" if one.judge else "by rules", one.stage.value, one.shapes, _nodes(one))
            for one in self.checks
        )
        yield Table(("target", "version", "how", "result", "shapes", "nodes"), rows)
        for one in self.checks:
            if one.why:
                tone = Tone.BAD if one.stage is Stage.REFUSED else Tone.WARN
                yield Text(f"{one.target}: {one.why}", tone)
            if one.changed:
                yield Text(f"{one.target}: refuses the file as it is: {one.as_it_is}", Tone.BAD)
                yield Text(f"{one.target}: {one.stage.value} {one.changed}", Tone.WARN)
            if one.symbols:
                yield Text(f"{one.target}: takes fixed sizes only; with dynamic shapes: {one.symbols}", Tone.WARN)
            if one.nodes:
                yield _table(one)
            if one.nodes and not one.complete:
                yield Text(f"{one.target}: further nodes may be refused; the search ended at its limit", Tone.WARN)
            if one.rewrite:
                yield Text(f"{one.target}: what helps: {one.rewrite}", Tone.GOOD)
            for note in one.notes if one.judge or len(self.checks) <= _FEW else ():
                yield Text(f"{one.target}: {note}")


def _nodes(check: TargetCheck) -> str:
    if not check.counts:
        return ""
    return ", ".join(f"{count:,} {stage}" for stage, count in check.counts.items())


def _table(check: TargetCheck) -> Table:
    helps = any(one.rewrite for one in check.nodes)
    placed = any(one.place for one in check.nodes)
    head: tuple[str, ...] = ("node", "operator", "result", "why", "found by")
    head += (("from",) if placed else ()) + (("what helps",) if helps else ())
    rows = []
    for one in check.nodes:
        row = (one.node, one.op, one.stage.value, one.why, one.evidence)
        rows.append(row + ((one.place,) if placed else ()) + ((one.rewrite,) if helps else ()))
    refused_first = sorted(range(len(rows)), key=lambda row: check.nodes[row].stage is not Stage.REFUSED)
    return Table(
        (f"{check.target}: {head[0]}", *head[1:]),
        tuple(rows),
        places=(Places(0, "node", tuple(one.node for one in check.nodes)),),
        worst_first=tuple(refused_first),
    )


def summary(check: TargetCheck) -> str:
    """Says in a few words how far the target came: `openvino agreed`, `tract refused 2 nodes`."""
    if check.stage is not Stage.REFUSED:
        where = f" ({check.shapes})" if check.shapes != "dynamic" else ""
        if check.changed:
            return f"{check.target} refused the file as it is, {check.stage.value} {check.changed}{where}"
        if check.symbols:
            return f"{check.target} {check.stage.value} at fixed sizes only{where}"
        return f"{check.target} {check.stage.value}{where}"
    refused = sum(one.stage is Stage.REFUSED for one in check.nodes)
    if check.whole or not refused:
        return f"{check.target} refused the model"
    return f"{check.target} refused {several(refused, 'node')}" + ("" if check.complete else " or more")
