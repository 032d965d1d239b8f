"""Reads reports, and lays their figures over the nodes of a scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any

from onnxsmith.base import rooms, user_files
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import ModelFile, Part, Report
from onnxsmith.base.report.parts.capture import Program
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, pasted, pasted_words
from onnxsmith.graph.files.load import near_files
from onnxsmith.viewer import scene
from onnxsmith.viewer.model_scene import Viewed
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying
from onnxsmith.viewer.page_links import nested_names

_MOST_BYTES = 512 * 2**20
"""Limits the bytes of a report that is read. A choice: a report of 20,000 nodes has 20 MB."""
_FOREIGN = 0.5
"""Sets the least share of names that are names of nodes. A report with the hash of another model and a smaller share is
refused. A choice: two networks of one library share a few names of modules."""


@dataclass(frozen=True)
class Given:
    """Holds a report, and its name in messages: the path."""

    report: Report
    name: str


@dataclass(eq=False)
class Laid:
    """Holds the overlays of all reports, their programs, and notes on figures that did not fit."""

    overlays: list[scene.Overlay]
    programs: list[tuple[str, Program]]
    notes: list[str]
    matched: list[tuple[str, int, int]]
    """Counts, for each title, the names of the report that are nodes of the model, and all names."""
    warnings: list[str]
    """Lists lines above the picture: on reports about other models, and remarks of reports on the whole model."""
    origins: dict[str, str]
    """Says which model a report is about, by name of the report."""
    missing: list[Missing]
    """Lists lines on names in reports that no node has."""


def read(source: str | Path | Report) -> Given:
    """Reads a report from a file that `--json` wrote.

    Raises:
        OnnxsmithError: `view/report` if there is no such file or the file cannot be read; `report/unreadable`.
    """
    if isinstance(source, Report):
        return Given(source, f"the report of {source.command}")
    path = Path(source)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise OSError(f"the file has more than {_MOST_BYTES >> 20} MB")
        text = user_files.read_utf8(path)
    except UnicodeDecodeError as error:
        raise problem(
            "report/unreadable",
            "this is not an onnxsmith report",
            where=str(source),
            why="the file is not text" + ("; it is a model" if path.suffix == ".onnx" else ""),
            fix="give the file that a command wrote with --json; to show a second model, leave --with out: "
            "`onnxsmith view one.onnx two.onnx`",
        ) from error
    except (OSError, ValueError) as error:
        raise problem(
            "view/report",
            "the report cannot be read",
            where=str(source),
            why=str(error),
            fix=near_files(path) or f"write a report first: `onnxsmith check MODEL --json > {pasted(path)}`",
        ) from error
    try:
        return Given(Report.from_json(text), str(source))
    except OnnxsmithError as error:
        raise problem(
            "report/unreadable", error.problem.what, where=str(source), why=error.problem.why, fix=error.problem.fix
        ) from error


def has_figures(report: Report) -> bool:
    """Whether the report has figures for nodes."""
    known = {name.replace("-", "_") for name in rooms.members("onnxsmith.viewer.overlays", Overlaying)}
    return any(isinstance(part, Program) or part.kind() in known for part in report.parts)


def laid(given: Sequence[Given], models: Sequence[Viewed]) -> Laid:
    """Lays reports over the models whose nodes they name. With two models, a report is laid over the model with the
    report's hash, else over the model that `side` chooses.

    Raises:
        OnnxsmithError: `view/no-figures` if a report has no figures for nodes; `view/other-model` if no model has any
            of its nodes, or if the report's hashes are of another model and no model has most of its nodes.
    """
    known = rooms.members("onnxsmith.viewer.overlays", Overlaying)
    found = Laid([], [], [], [], [], {}, [])
    for one in given:
        programs = [part for part in one.report.parts if isinstance(part, Program)]
        parts = [part for part in one.report.parts if part.kind().replace("_", "-") in known]
        found.programs += ((one.name, part) for part in programs)
        if not parts and not programs:
            raise _without_figures(one, known)
        origins = [origin(one.report, model.file) for model in models]
        counts = [_lay(one, part, known[part.kind().replace("_", "-")], models, origins, found) for part in parts]
        hits, asked = sum(hit for hit, _ in counts), sum(count for _, count in counts)
        sure = surest(origins)
        few = hits < _FOREIGN * asked if sure is Origin.OTHER else not hits
        if asked and few and sure is not Origin.SAME:
            raise _of_another(one, hits, asked, models)
        _tell(one, sure, hits, asked, found)
    return found


def _tell(given: Given, found: Origin, hits: int, asked: int, laid: Laid) -> None:
    """Notes whether the report is about the model, and warns if the report is about another model."""
    laid.origins[given.name] = found.value
    if found not in (Origin.OTHER, Origin.WEIGHTS):
        return
    matched = f"; {hits:,} of {asked:,} names match" if asked else ""
    laid.warnings.append(f"{given.name}: the report is {found.value} ({named(given.report.models)}){matched}")


def _without_figures(given: Given, known: Iterable[str]) -> OnnxsmithError:
    failed = "; ".join(f"{trouble.id}: {trouble.what}" for trouble in given.report.problems)
    return problem(
        "view/no-figures",
        f"the report of {given.report.command} has no figures for nodes",
        where=given.name,
        why=f"the command failed: {failed}"
        if given.report.verdict is Verdict.FAILED
        else (
            f"only these parts of a report have figures: {', '.join(name.replace('-', '_') for name in known)}, and "
            "program"
        ),
        fix="`onnxsmith explain view/no-figures` lists the commands and options that write them",
    )


def _of_another(given: Given, hits: int, asked: int, models: Sequence[Viewed]) -> OnnxsmithError:
    files = named(given.report.models)
    shown = models[0].scene.path or "this model"
    there = next((one.path for one in given.report.models if one.path and Path(one.path).exists()), "")
    view = f"`{pasted_words(['onnxsmith', 'view', there, '--with', given.name])}`" if there else ""
    few = (
        f"only {hits:,} of its {asked:,} names are nodes of this model"
        if hits
        else f"none of its {asked:,} names is a node of this model"
    )
    return problem(
        "view/other-model",
        f"the report is of another model: {few}",
        where=given.name,
        why=f"the report is about {files}" if files else "the report does not say which file it is about",
        fix=f"view the model that the report is about{view and f': {view}'}; or run {given.report.command} on "
        f"{shown}, with --json, and give that report",
    )


def _lay(
    given: Given,
    part: Part,
    how: Overlaying,
    models: Sequence[Viewed],
    origins: Sequence[Origin],
    found: Laid,
) -> tuple[int, int]:
    """Lays one part over a model. Returns the number of the part's names that are nodes of the model, and the number of
    all its names."""
    tries: list[tuple[Names, list[Layer]]] = []
    for model in models:
        names = _names(model)
        tries.append((names, [layer for layer in how.layers(part, names) if layer.figures]))
    best = side(given.report, part, how, models, [names.found for names, _ in tries], origins)
    names, layers = tries[best]
    if names.asked:
        found.matched.append((f"{part.title} of {given.name}", names.found, names.asked))
    found.missing += missing(given.name, part.title, names, how, origins[best])
    said = [f"{given.name}: {one}" for one in how.remarks(part)]
    found.warnings += said
    if not layers and not said and names.found == names.asked:
        found.warnings.append(f"{given.name}: {part.title} has no figure for a node")
    stranger = f", {origins[best].value}" if origins[best] in (Origin.OTHER, Origin.WEIGHTS) else ""
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
                f"onnxsmith {given.report.command}: {given.name}{stranger}",
            )
        )
    return names.found, names.asked


def _names(shown: Viewed) -> Names:
    model = shown.scene
    nodes: dict[str, list[int]] = {}
    modules: dict[str, list[int]] = {}
    for number, name in enumerate(model.nodes.name):
        nodes.setdefault(name, []).append(number)
        module = model.nodes.module[number]
        modules.setdefault(model.modules[module]["path"] if module >= 0 else _scope(name), []).append(number)
    plain = set(nodes)
    for name, number in nested_names(shown):
        if name not in plain:
            nodes.setdefault(name, []).append(number)
    made = zip(model.values.name, model.values.producer, strict=True)
    makers: dict[str, int] = {}
    for name, node in made:
        if node >= 0 or name not in makers:
            makers[name] = node
    return Names(nodes, makers, modules, shown.source, shown.nodes)


def _scope(name: str) -> str:
    """Returns the scope in a node's name, as `inspect --costs` writes it."""
    return "/".join([step for step in name.split("/") if step][:-1])


# Says which names of a report no node has, and why.

_FEW = 3
"""Limits the names in a line. A choice: enough to recognise the kind."""
_MANY = 0.5
"""Sets the share of absent names from which a report without a hash may be about another version of the model. A
choice."""


@dataclass(frozen=True)
class Missing:
    """Holds a line for the headline, and a line with some of the names for the page."""

    short: str
    long: str


def missing(report: str, title: str, names: Names, how: Overlaying, found: Origin) -> Iterator[Missing]:
    """Yields lines for each kind of name without a node. `found` says which model the report is about."""
    for absent, here, why in (
        (names.stored, "", "inputs and stored tensors"),
        (names.absent, " here", _why(names, how, found)),
    ):
        if absent:
            counted = f"{report}: {len(absent):,} of {names.asked:,} names in {title} {_have(absent)} no node{here}"
            shown = first_few(dict.fromkeys(absent), _FEW)
            yield Missing(f"{counted} ({why})", f"{counted}: {shown}: {why}")


def _have(absent: Sequence[str]) -> str:
    return "has" if len(absent) == 1 else "have"


def _why(names: Names, how: Overlaying, found: Origin) -> str:
    if found in (Origin.OTHER, Origin.WEIGHTS):
        return f"the report is {found.value}"
    if how.made:
        return how.made
    if found is Origin.SAME:
        return "the command reported on a copy of the model, which has other names"
    if len(names.absent) > _MANY * names.asked:
        return "the report may be about another version of the model"
    return "the report has no hash that identifies the version of the model"


# Chooses which of two models a part of a report is laid over.


def side(
    report: Report, part: Any, how: Overlaying, models: Sequence[Viewed], hits: Sequence[int], origins: Sequence[Origin]
) -> int:
    """Returns the index of the model over which a part is laid. `hits` says how many of the part's names each model
    has.

    Hashes decide first, then the file that the part names, then the number of names. If all are equal, as in a
    comparison of two models with the same names, the kind of part decides.
    """
    subject = how.subject(part)

    def fit(at: int) -> tuple[bool, bool, int, int]:
        known = hits[at] > 0
        own = known and origins[at] is Origin.SAME
        return own, known and _about(subject, report, models[at]), hits[at], at if how.newer else -at

    return max(range(len(models)), key=fit)


def _about(subject: str, report: Report, model: Viewed) -> bool:
    files = [one for one in report.models if _is_called(subject, one.path)]
    if files and model.file is not None:
        return any(one.same_graph(model.file) for one in files)
    return _is_called(subject, model.scene.path)


def _is_called(subject: str, path: str) -> bool:
    """Whether a text such as `new.onnx on onnxruntime` names the file, in any folder."""
    name = PurePath(path).name
    given = PurePath(subject).name
    return bool(name) and given.startswith(name) and given[len(name) :][:1] in ("", " ", "@")


_DIGITS = 12
"""Counts the digits of a hash in a line. A choice: enough to find the hash in a report, few enough to read."""


class Origin(StrEnum):
    """Says which model a report is about, the surest case first."""

    SAME = "of this model"
    WEIGHTS = "of this graph with other weights"
    OTHER = "of another model"
    UNKNOWN = "no hash"


def origin(report: Report, shown: ModelFile | None) -> Origin:
    """Compares the files that a report read or wrote with the shown file. One equal file is enough, because the report
    of a step is about the models before and after the step."""
    if shown is None or not report.models:
        return Origin.UNKNOWN
    same = [one for one in report.models if one.same_graph(shown)]
    if not same:
        return Origin.OTHER
    return Origin.SAME if any(one.same_weights(shown) for one in same) else Origin.WEIGHTS


def surest(origins: Sequence[Origin]) -> Origin:
    """Returns the first of the origins in the order of `Origin`, because a report may be about only one of two
    models."""
    return min(origins, key=list(Origin).index)


def named(files: Sequence[ModelFile]) -> str:
    """Says which files a report is about: `hash 1a2b3c4d5e6f, named old.onnx`."""
    said = [f"hash {one.sha256[:_DIGITS]}, named {one.path}" for one in files]
    return "; ".join(dict.fromkeys(said))
