"""Describes what runs where: the stage that each target reached with a model, and what ran of a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.words import first_few, pasted, several


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


_HARM = (Stage.REFUSED, Stage.NOT_TRIED, Stage.PARSED, Stage.FITS, Stage.BUILT, Stage.RAN, Stage.AGREED)
"""The order of results on a card: those that need attention first."""


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
    differs: bool = False
    """Whether its numbers are others than those of another runtime."""
    untried: tuple[str, ...] = ()
    """What the comparison of its numbers did not try, such as other sizes."""
    help: str = ""
    """What lets more be said: of its numbers, or of a rewrite if none was searched; with MODEL for the file. "" for an
    input of the user's."""


@dataclass(frozen=True)
class TargetChecks(Part):
    """A row for each target, then the nodes that stopped it."""

    title: ClassVar[str] = "Targets"
    recorded = ("checks",)

    checks: tuple[TargetCheck, ...]

    def card(self) -> tuple[tuple[str, str], ...]:
        """Returns the targets by result, the worst first; nothing if they are few enough for their tables."""
        if len(self.checks) <= _FEW:
            return ()
        found: dict[str, list[str]] = {}
        for one in sorted(self.checks, key=lambda check: _HARM.index(check.stage)):
            label = f"{one.stage.value}, changed" if one.changed else one.stage.value
            where = f" ({one.shapes})" if one.shapes != "dynamic" else ""
            found.setdefault(label, []).append(one.target + where)
        return tuple((label, ", ".join(names)) for label, names in found.items())

    def blocks(self) -> Iterator[Block]:
        rows = tuple(
            (one.target, one.version, "asked" if one.judge else "by rules", one.stage.value, one.shapes, _nodes(one))
            for one in self.checks
        )
        yield Table(("target", "version", "how", "result", "shapes", "nodes"), rows, is_key=True)
        for one in self.checks:
            if one.why:
                tone = Tone.BAD if one.stage is Stage.REFUSED else Tone.WARN
                yield Text(f"{one.target}: {one.why}", tone)
            if one.changed:
                yield Text(f"{one.target}: refuses the unchanged file: {one.as_it_is}", Tone.BAD)
                yield Text(f"{one.target}: {one.stage.value} {one.changed}", Tone.WARN)
            if one.symbols:
                yield Text(
                    f"{one.target}: accepts fixed sizes only; with dynamic shapes it refuses: {one.symbols}", Tone.WARN
                )
            if one.nodes:
                yield _table(one)
            if one.nodes and not one.complete:
                yield Text(f"{one.target}: further nodes may be refused; the search ended at its limit", Tone.WARN)
            if one.rewrite:
                yield Text(f"{one.target}: what helps: {one.rewrite}", Tone.GOOD)
            for gap in one.untried:
                yield Text(f"{one.target}: {gap}", Tone.WARN)
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
    rows, groups = [], _alike(check.nodes)
    for group in groups:
        one = group[0]
        row = (first_few([node.node for node in group], _FEW), one.op, one.stage.value, one.why, one.evidence)
        rows.append(row + ((one.place,) if placed else ()) + ((one.rewrite,) if helps else ()))
    refused_first = sorted(range(len(rows)), key=lambda row: groups[row][0].stage is not Stage.REFUSED)
    return Table(
        (f"{check.target}: {head[0]}", *head[1:]),
        tuple(rows),
        places=(Places(0, "node", tuple(group[0].node for group in groups)),),
        worst_first=tuple(refused_first),
    )


def _alike(nodes: Sequence[NodeCheck]) -> list[list[NodeCheck]]:
    """Groups nodes of which the table says the same, each group at the place of its first node."""
    found: dict[NodeCheck, list[NodeCheck]] = {}
    for one in nodes:
        found.setdefault(replace(one, node=""), []).append(one)
    return list(found.values())


def summary(check: TargetCheck) -> str:
    """Says in a few words how far the target came: `openvino agreed`, `tract refused 2 nodes, 1 node undecided`."""
    undecided = (check.counts or {}).get(Stage.NOT_TRIED.value, 0)
    if check.stage is not Stage.REFUSED:
        where = f" ({check.shapes})" if check.shapes != "dynamic" else ""
        if check.changed:
            return f"{check.target} refused the unchanged file, {check.stage.value} {check.changed}{where}"
        if check.differs:
            return f"{check.target} {check.stage.value}, but returned other numbers{where}"
        if check.symbols:
            return f"{check.target} {check.stage.value} at fixed sizes only{where}"
        if check.stage is Stage.NOT_TRIED and undecided and not check.judge:
            return f"{check.target} leaves {several(undecided, 'node')} undecided{where}"
        return f"{check.target} {check.stage.value}{where}"
    refused = sum(one.stage is Stage.REFUSED for one in check.nodes)
    if check.whole or not refused:
        return f"{check.target} refused the model"
    more = "" if check.complete else " or more"
    return f"{check.target} refused {several(refused, 'node')}{more}" + (
        f", {several(undecided, 'node')} undecided" if undecided else ""
    )


def refusals(checks: Sequence[TargetCheck], model: str, inputs: Sequence[str]) -> tuple[Problem, ...]:
    """Returns a problem for each target that refuses the model, or of whose numbers nothing good can be said. `inputs`
    are the names of the model's inputs."""
    found = []
    for one in checks:
        command = f"onnxsmith check {pasted(model)} --target {pasted(one.target)} --fix -o fixed.onnx"
        fix = f"`{command}`" if one.rewrite else ""
        if one.stage is Stage.REFUSED or one.changed:
            refused = [node.node for node in one.nodes if node.stage is Stage.REFUSED]
            nodes = first_few(refused or [node.node for node in one.nodes], _FEW) or model
            why = one.why if one.stage is Stage.REFUSED else one.as_it_is
            found.append(Problem("target/refused", summary(one), nodes, why, fix or _other_way(one, model)))
        elif one.why and one.stage is not Stage.NOT_TRIED:
            found.append(Problem("target/not-proved", summary(one), model, one.why, _given(one, model, inputs)))
    return tuple(found)


def _other_way(check: TargetCheck, model: str) -> str:
    """Returns the advice for a target without a known rewrite: the commands that describe the refused operators."""
    refused: dict[str, str] = {}
    for one in check.nodes:
        if one.stage is Stage.REFUSED:
            refused.setdefault(one.op, one.node)
    if not refused:
        return "leave this target out, or export the model for it: `onnxsmith explain target/refused`"
    commands = "; ".join(_described(op, node, model) for op, node in list(refused.items())[:_FEW])
    search = f"{check.help.replace('MODEL', pasted(model))}; or " if check.help else ""
    return (
        f"{search}write {first_few(list(refused), _FEW)} as operators that the target accepts, in the module or file: "
        f"`{commands}` describes {'it' if len(refused) == 1 else 'them'}, `onnxsmith replace -h` shows how; or leave "
        "this target out"
    )


def _described(op: str, node: str, model: str) -> str:
    """Returns a command that shows what an operator computes: its definition in the standard, or a node of it."""
    domain, _, _ = op.rpartition("::")
    if domain and not domain.startswith("ai.onnx"):
        return f"onnxsmith inspect {pasted(model)} {pasted(node.removeprefix('-> '))}"
    return f"onnxsmith op {op}"


def _given(check: TargetCheck, model: str, names: Sequence[str]) -> str:
    """Returns the advice for a target whose numbers are others, or prove nothing."""
    if check.differs and not check.help:
        other = "openvino" if check.target.startswith("onnxruntime") else "onnxruntime"
        sides = " ".join(pasted(f"{model}@{runtime}") for runtime in (other, check.target))
        return f"`onnxsmith compare {sides} --per-layer` shows where they begin to differ; or leave this target out"
    if check.help:
        return check.help.replace("MODEL", pasted(model))
    arrays = ", ".join(f"{name}=…" for name in names[:_FEW]) + (", …" if len(names) > _FEW else "")
    return (
        f"give an input that the model is meant for: write it by numpy.savez('inputs.npz', **dict({arrays})) and add "
        "--input inputs.npz"
    )


NOT_RUN = "not run"
"""Is the state of a check whose client is not on this machine."""


@dataclass(frozen=True)
class BundleCheck:
    """A check of one part of a bundle in its client, the program that will load it.

    `state` is `equal`, `different` or `not run`. `detail` names the client and its version, or says why it was not run.
    `largest` is the largest difference relative to the largest magnitude of the expected output; None if none was
    measured. `tolerance` is the largest difference that was allowed; None if everything had to be equal.
    """

    name: str
    state: str
    detail: str
    largest: float | None = None
    tolerance: float | None = None

    def __str__(self) -> str:
        within = f" to {self._allowed}" if self.state == "equal" and self.tolerance is not None else ""
        return f"{self.name}: ran, {self.state}{within} ({self.detail})"

    @property
    def _allowed(self) -> str:
        return "" if self.tolerance is None else f"{self.tolerance:.2g}".replace("e-0", "e-")


def checks_said(checks: Sequence[BundleCheck]) -> list[str]:
    """Returns the checks as clauses of a headline. A reason why several were not run is in it once."""
    idle: dict[str, list[str]] = {}
    for check in checks:
        if check.state == NOT_RUN:
            idle.setdefault(check.detail, []).append(check.name)
    ran = [str(check) for check in checks if check.state != NOT_RUN]
    return [*ran, *(f"{', '.join(names)}: {NOT_RUN}: {why}" for why, names in idle.items())]


@dataclass(frozen=True)
class Bundle(Part):
    """A bundle of one form. `golden` describes the recorded inputs, `licence` what is known about the model's
    licence."""

    title = "Bundle"
    recorded = ("form", "task", "golden", "checks", "licence", "notes")

    model: str
    form: str
    task: str
    golden: tuple[str, ...]
    checks: tuple[BundleCheck, ...]
    licence: str
    notes: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("model", self.model),
                ("form", self.form),
                ("task", self.task),
                ("golden inputs", "; ".join(self.golden)),
                ("licence", self.licence),
            ]
        )
        rows = []
        for check in self.checks:
            largest = "" if check.largest is None else f"{check.largest:.2g}"
            # The headline says once why checks were not run.
            detail = "" if check.state == NOT_RUN else check.detail
            rows.append((check.name, check.state, largest, check._allowed, detail))
        yield Table(("part", "result", "largest difference", "allowed", "detail"), tuple(rows), right=(2, 3))
        for note in self.notes:
            yield Text(note, Tone.WARN)
