"""Reads reports, and lays what they say over the nodes of a scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxsmith import rooms
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.report.base import Part, Report
from onnxsmith.report.parts.program import Program
from onnxsmith.report.verdict import Verdict
from onnxsmith.viewing import scene
from onnxsmith.viewing.overlays.base import Layer, Names, Overlaying

_MOST_BYTES = 512 * 2**20
"""Bytes of the largest report that is read. A choice: a report of 20,000 nodes has 20 MB."""
_FOREIGN = 0.5
"""Share of the names that must be those of nodes, below which a note says so. A choice."""


@dataclass(frozen=True)
class Given:
    """A report, and what to call it: its path."""

    report: Report
    name: str


@dataclass(eq=False)
class Laid:
    """The overlays of all reports, their programs, and notes on what did not fit."""

    overlays: list[scene.Overlay]
    programs: list[tuple[str, Program]]
    notes: list[str]
    matched: list[tuple[str, int, int]]
    """By title: how many names of the report are nodes of the model, and how many names there are."""


def read(source: str | Path | Report) -> Given:
    """Reads a report that `--json` wrote.

    Raises:
        OnnxsmithError: `view/report` if there is no such file or it cannot be read; `report/unreadable`.
    """
    if isinstance(source, Report):
        return Given(source, f"the report of {source.command}")
    path = Path(source)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise OSError(f"it has more than {_MOST_BYTES >> 20} MB")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise problem(
            "view/report",
            "the report cannot be read",
            where=str(source),
            why=str(error),
            fix="give a file that another command wrote, such as onnxsmith check model.onnx --json > report.json",
        ) from error
    try:
        return Given(Report.from_json(text), str(source))
    except OnnxsmithError as error:
        raise problem(
            "report/unreadable", error.problem.what, where=str(source), why=error.problem.why, fix=error.problem.fix
        ) from error


def laid(given: Sequence[Given], models: Sequence[scene.Model]) -> Laid:
    """Lays reports over the models whose nodes they name; a report of two models is laid over the one that has more.

    Raises:
        OnnxsmithError: `view/no-figures` if a report says nothing of nodes, `view/other-model` if it names nodes, and
            no model has any of them.
    """
    known = rooms.members("onnxsmith.viewing.overlays", Overlaying)
    found = Laid([], [], [], [])
    for one in given:
        programs = [part for part in one.report.parts if isinstance(part, Program)]
        parts = [part for part in one.report.parts if part.kind().replace("_", "-") in known]
        found.programs += ((one.name, part) for part in programs)
        if not parts and not programs:
            failed = "; ".join(f"{trouble.id}: {trouble.what}" for trouble in one.report.problems)
            raise problem(
                "view/no-figures",
                f"the report of {one.report.command} has no figures of nodes",
                where=one.name,
                why=f"the command failed: {failed}"
                if one.report.verdict is Verdict.FAILED
                else f"shown are the parts {', '.join(name.replace('-', '_') for name in known)}, and program",
                fix="onnxsmith explain view/no-figures lists the commands and options that write them",
            )
        for part in parts:
            _lay(one, part, known[part.kind().replace("_", "-")], models, found)
    return found


def _lay(given: Given, part: Part, how: Overlaying, models: Sequence[scene.Model], found: Laid) -> None:
    tries: list[tuple[Names, list[Layer]]] = []
    for model in models:
        names = _names(model)
        tries.append((names, [layer for layer in how.layers(part, names) if layer.figures]))
    best = max(range(len(models)), key=lambda at: (tries[at][0].found, -at))
    names, layers = tries[best]
    if names.asked and not names.found:
        raise problem(
            "view/other-model",
            f"the report is of another model: none of its {names.asked:,} names is a node here",
            where=given.name,
            why="a report says names of nodes, not which file they are from",
            fix=f"make the report of {models[0].path or 'this model'}, or view the model that it was made of",
        )
    if names.asked:
        found.matched.append((f"{part.title} of {given.name}", names.found, names.asked))
    if names.found < _FOREIGN * names.asked:
        found.notes.append(
            f"{given.name}: {names.found:,} of the {names.asked:,} names in {part.title} are nodes of the model; the "
            "report may be of another version of it"
        )
    for layer in layers:
        nodes = sorted(layer.figures)
        found.overlays.append(
            scene.Overlay(
                layer.title,
                best,
                layer.unit,
                layer.scale,
                layer.classes,
                layer.worst,
                nodes,
                [layer.figures[node][0] for node in nodes],
                [layer.figures[node][1] for node in nodes],
                f"onnxsmith {given.report.command}: {given.name}",
            )
        )


def _names(model: scene.Model) -> Names:
    nodes: dict[str, list[int]] = {}
    modules: dict[str, list[int]] = {}
    for number, name in enumerate(model.nodes.name):
        nodes.setdefault(name, []).append(number)
        module = model.nodes.module[number]
        modules.setdefault(model.modules[module]["path"] if module >= 0 else _scope(name), []).append(number)
    made = zip(model.values.name, model.values.producer, strict=True)
    return Names(nodes, {name: node for name, node in made if node >= 0}, modules)


def _scope(name: str) -> str:
    """The scope in a node's name, as `inspect --costs` writes it."""
    return "/".join([step for step in name.split("/") if step][:-1])
