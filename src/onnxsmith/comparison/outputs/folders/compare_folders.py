"""Compares a folder of graphs with its original: the entry of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxsmith.base.clock import Clock
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.folders import FolderFiles, FolderParts
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, pasted, several
from onnxsmith.comparison.outputs.folders import layouts, other_files
from onnxsmith.comparison.outputs.folders.generated_texts import Walked, walked
from onnxsmith.comparison.outputs.folders.graph_parts import Generation, generations
from onnxsmith.comparison.outputs.folders.graph_ports import HIDDEN
from onnxsmith.comparison.outputs.folders.layouts import CONFIG, DECODER, FIRST, GraphFolder
from onnxsmith.comparison.outputs.folders.references import OfGraphs, OfTransformers, Reference
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.verification.inputs.generate import Feed

STEPS = 8
"""How many tokens are generated if the user does not say it. A choice: enough that caches pass from call to call."""


@dataclass(frozen=True)
class Asked:
    """The options of a comparison that folders know. `compare` compares two models, with all options of the user for
    a single graph, and without them for a graph with recorded inputs."""

    steps: int
    seed: int
    runtime: str | None
    others: tuple[str, ...]
    """The options that folders of generation do not know."""
    compare: Callable[..., Report]


def compare_folder(reference: Any, candidate: str | Path, asked: Asked) -> Report:
    """Compares a folder of graphs with its original, which is a folder of transformers or of graphs.

    Raises:
        OnnxsmithError: `compare/folder-layout`, `compare/folder-part`, `compare/folder-config`,
            `compare/folder-original`, `compare/folder-option`; the errors of `compare` and of loading the original.
    """
    original, path = Path(reference) if layouts.is_folder(reference) else None, Path(candidate)
    is_file = not path.is_dir()
    folder = layouts.of_file(path) if is_file else layouts.read(path)
    held = {} if is_file else layouts.settings(path / CONFIG)  # a damaged file is an error, also if it is not used
    with Clock() as clock, ExitStack() as stack:
        if original is None:
            return asked.compare(reference, _only(folder))
        ways = generations(folder)
        found = _generated(original, folder, ways, asked, stack) if ways else _alone(original, folder, asked)
        settings = found.settings or layouts.settings(original / CONFIG)
        files = other_files.compared(original, path, settings) if not is_file and (held or settings) else None
    return _report(found, files, original, folder, clock)


def _only(folder: GraphFolder) -> Path:
    """Returns the only graph of a folder, to compare it with a model that is no folder."""
    if len(folder.files) + len(folder.parts) == 1:
        return next(iter((*folder.files.values(), *folder.parts.values())))
    every = [*folder.files.values(), *folder.parts.values()]
    raise problem(
        "compare/folder-original",
        "a folder of several graphs is compared with a folder",
        where=str(folder.path),
        why=f"it has {first_few([one.name for one in every], 4)}",
        fix=f"give the folder of the original as REFERENCE, or one graph as CANDIDATE: {pasted(every[0])}",
    )


@dataclass(frozen=True)
class _Found:
    """What was compared: ways to generate text, or reports of single graphs by their name."""

    label: str
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] | None = None
    ways: tuple[Walked, ...] = ()
    singles: tuple[tuple[str, Report], ...] = ()
    gaps: tuple[str, ...] = ()


def _generated(
    original: Path, folder: GraphFolder, ways: Sequence[Generation], asked: Asked, stack: ExitStack
) -> _Found:
    if asked.others:
        raise problem(
            "compare/folder-option",
            f"{asked.others[0]} has no meaning for a folder whose graphs generate text",
            where=str(folder.path),
            why="its graphs are compared on the calls of a generated text, which the original determines",
            fix=f"leave {asked.others[0]} out",
        )
    for way in ways:
        if way.encoder is None and way.first.port(HIDDEN) is not None:
            raise layouts.missing(folder.path, ["encoder_model.onnx"], f"{way.first.file.name} reads its result")
    reference = _reference(original, ways, asked, stack)

    def compare_models(a: SideSource, b: SideSource, feeds: Sequence[Feed]) -> Report:
        return asked.compare(a, b, inputs=tuple(feeds), plain=True)

    found = tuple(
        walked(reference, way, compare_models, steps=asked.steps or STEPS, seed=asked.seed, runtime=asked.runtime)
        for way in ways
    )
    return _Found(reference.label, reference.notes, reference.settings, found)


def _reference(original: Path, ways: Sequence[Generation], asked: Asked, stack: ExitStack) -> Reference:
    has_encoder = any(way.has_encoder for way in ways)
    if not layouts.is_of_graphs(original):
        return OfTransformers(original, has_encoder=has_encoder, stack=stack)
    theirs = layouts.read(original)
    mine = generations(theirs)
    if not mine or mine[0].has_encoder != has_encoder:
        raise problem(
            "compare/folder-original",
            f"the graphs in {theirs.label} do not generate text as those of the candidate do",
            where=str(original),
            why=f"they are {first_few([one.name for one in theirs.files.values()], 4)}",
            fix="give the folder of the same model as REFERENCE, with graphs that return caches",
        )
    settings = layouts.settings(original / CONFIG) or layouts.settings(original / layouts.GENAI).get("model", {})
    text = settings.get("text_config")
    return OfGraphs(theirs.label, mine[0], {**settings, **(text if isinstance(text, dict) else {})}, asked.runtime)


def _alone(original: Path, folder: GraphFolder, asked: Asked) -> _Found:
    """Compares graphs that do not generate text, each with its model or graph of the original."""
    if folder.parts:
        return _parts(original, folder, asked)
    file = folder.files.get(DECODER) or folder.files[FIRST]
    label, reference = _whole(original, file)
    return _Found(label, singles=((file.name, asked.compare(reference, file)),))


def _whole(original: Path, file: Path) -> tuple[str, Any]:
    """Returns the original of a graph: a graph of the same role, or the model of transformers with example inputs."""
    if layouts.is_of_graphs(original):
        theirs = layouts.read(original)
        mine = theirs.files.get(DECODER) or theirs.files.get(FIRST)
        if mine is None:
            raise layouts.missing(original, [file.name], "it is the graph to compare with")
        return f"{theirs.label}/{mine.name}", mine
    from onnxsmith.exporter.pretrained.original_calls import whole
    from onnxsmith.graph.files.load import load
    from onnxsmith.graph.structure.signature import signature

    ports = signature(load(file))
    inputs, outputs = [port.name for port in ports.required()], [port.name for port in ports.outputs]
    return original.resolve().name, whole(str(original), inputs, outputs)


def _parts(original: Path, folder: GraphFolder, asked: Asked) -> _Found:
    """Compares the parts of a pipeline one by one."""
    singles, gaps = [], []
    for name, file in folder.parts.items():
        place = original / name
        if (place / "model.onnx").is_file():
            reference: Any = place / "model.onnx"
        else:
            try:
                reference = _whole(place, file)[1]
            except OnnxsmithError as error:
                gaps.append(f"{name} was not compared: {error.problem.what}")
                continue
        singles.append((name, asked.compare(reference, file)))
    if not singles:
        raise problem(
            "compare/folder-original",
            "the original has no part that can be compared",
            where=str(original),
            why="; ".join(gaps),
            fix="give the folder of the pipeline: it has "
            + first_few([f"{one}/config.json" for one in folder.parts], 3),
        )
    return _Found(original.resolve().name, singles=tuple(singles), gaps=tuple(gaps))


def _report(found: _Found, files: FolderFiles | None, original: Path, folder: GraphFolder, clock: Clock) -> Report:
    reports = [(name, one) for name, one in found.singles]
    reports += [(row.name, one) for way in found.ways for row, one in zip(way.graphs, way.reports, strict=True)]
    wrong = other_files.problems(files, original, folder.path)
    told = [*(one for _, report in reports for one in report.problems), *wrong, *_of_ways(found.ways)]
    verdicts = [report.verdict for _, report in reports]
    alone = any(len(way.tokens.texts) == 1 for way in found.ways)
    untried = ["no mask with a gap was tried"] if alone else []
    gaps = (*found.gaps, *untried, *([f"not compared: {first_few(folder.unread, 3)}"] if folder.unread else []))
    if Verdict.FAILED in verdicts:
        verdict = Verdict.FAILED
    elif Verdict.DIFFERENT in verdicts or wrong or any(way.differs for way in found.ways):
        verdict = Verdict.DIFFERENT
    elif Verdict.CANNOT_TELL in verdicts or any(way.unsure for way in found.ways) or found.gaps:
        verdict = Verdict.CANNOT_TELL
    else:
        verdict = Verdict.DONE
    parts: list[Part] = []
    if found.ways:
        graphs = tuple(row for way in found.ways for row in way.graphs)
        parts.append(FolderParts(folder.layout, graphs, folder.unread))
        parts += [part for way in found.ways for part in (way.tokens, way.steps) if part is not None]
    parts += [files] if files is not None else []
    parts += [part for _, one in reports for part in one.parts if not isinstance(part, Timing)]
    said = f"{found.label} and {folder.label} ({folder.layout}): {_said(found, files, verdict)}"
    headline = "; ".join([said, *gaps])
    notes = tuple(dict.fromkeys([*found.notes, *(note for _, one in reports for note in one.notes)]))
    return Report("compare", verdict, (*parts, Timing(clock.passed())), tuple(told), notes, headline)


def _of_ways(ways: Sequence[Walked]) -> list[Problem]:
    """Returns the problems of calls in a row whose graphs agree by themselves."""
    made = []
    for way in ways:
        if any(report.problems for report in way.reports):
            continue
        steps = way.steps
        if way.differs:
            what = f"the generated text differs: {way.first or (steps.drift if steps else '')}"
            made.append(
                Problem(
                    "verify/different", what, where=way.generation.name,
                    why="each graph agrees by itself, so the difference arises from call to call",
                    fix="`onnxsmith explain verify/different` lists the usual causes",
                )
            )  # fmt: skip
        elif way.unsure:
            made.append(
                Problem(
                    "verify/cannot-tell",
                    f"the check cannot decide whether the texts are equal: {way.unsure}",
                    where=way.generation.name,
                    why="no difference was found, but the calls with this fault agree too",
                    fix="generate more tokens: --steps 32; or another text: --seed 1",
                )
            )
    return made


def _said(found: _Found, files: FolderFiles | None, verdict: Verdict) -> str:
    """Returns the verdict in words: what was compared, or the first difference."""
    apart = [one.name for one in (files.files if files is not None else ()) if one.verdict == "DIFFERENT"]
    beside = f"{first_few(apart, 3)} DIFFERENT" if apart else ""
    first = next((_first(way) for way in found.ways if way.differs), "")
    if not found.ways:
        singles = [f"{name} {_word(one.verdict)}" for name, one in found.singles]
        return "; ".join(filter(None, [beside, *singles]))
    if first or beside:
        return "; ".join(filter(None, [first and f"DIFFERENT, first in {first}", beside]))
    graphs = sum(len(way.graphs) for way in found.ways)
    texts = [text for way in found.ways for text in way.tokens.texts]
    tokens = several(sum(text.first - 1 if text.first else len(text.tokens) for text in texts), "token")
    if verdict is Verdict.CANNOT_TELL:
        why = next((way.unsure for way in found.ways if way.unsure), "") or _doubt(found)
        return f"CANNOT TELL: {why}"
    near = [text.first for text in texts if text.first]
    but = f"; a text goes on with another token from token {min(near)} on, which the tolerance allows" if near else ""
    return f"equal in {several(graphs, 'graph')} and {tokens} of {several(len(texts), 'text')}{but}"


def _first(way: Walked) -> str:
    """Returns the first call, graph and output that differ; a graph by itself if only that differs."""
    if way.first:
        return way.first
    wrong = next((one for one in way.graphs if one.verdict == "DIFFERENT"), None)
    if wrong is not None:
        return f"{wrong.name}, output {wrong.output}"
    return way.steps.drift if way.steps is not None else way.generation.name


def _doubt(found: _Found) -> str:
    for way in found.ways:
        for row, report in zip(way.graphs, way.reports, strict=True):
            unsure = report.part(Verification).unsure
            if unsure:
                return f"{row.name}: {unsure[0]}"
    return ""


def _word(verdict: Verdict) -> str:
    return {
        Verdict.DONE: "equal",
        Verdict.DIFFERENT: "DIFFERENT",
        Verdict.CANNOT_TELL: "CANNOT TELL",
        Verdict.FAILED: "failed",
    }[verdict]
