"""Says what changed between two models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import onnx_ir as ir

from onnxsmith.clock import stage
from onnxsmith.differences import functions, properties
from onnxsmith.differences.constants import Constants
from onnxsmith.differences.counting import IGNORED, Counted, Rows
from onnxsmith.differences.functions import FunctionPairs
from onnxsmith.differences.graphs import Found, compare
from onnxsmith.differences.interning import Numbers
from onnxsmith.differences.names import renamings
from onnxsmith.differences.pairs import Pairs
from onnxsmith.differences.view import Side, View
from onnxsmith.differences.weight_pairs import WeightPairs
from onnxsmith.memory import no_collection
from onnxsmith.model.files.load import Source, load
from onnxsmith.model.graph import carried, walk
from onnxsmith.model.surgery.inlining import inlined
from onnxsmith.problem import problem
from onnxsmith.report.base import Report
from onnxsmith.report.parts.difference import Difference
from onnxsmith.report.parts.interface_changes import PortChange
from onnxsmith.report.parts.renamings import Renaming, Renamings
from onnxsmith.report.verdict import Verdict
from onnxsmith.result import Result
from onnxsmith.words import several

Models = tuple[ir.Model, ir.Model]


def diff(old: Source, new: Source, *, ignore: Iterable[str] = ()) -> Result:
    """Says what changed from one model to another: nodes, attributes, wiring, weights, interface, versions, metadata.

    Nothing is run. Nodes are paired by what they compute, how they are used, and their weights, so that new names and
    another order of the nodes are no difference; other names are listed. Names of inputs and outputs are a difference,
    because callers use them, and so is a weight that is stored in another form. The verdict is `different` if anything
    differs, `cannot-tell` if nothing does but values are missing. `ignore` takes what does not count as a difference:
    `names` (of inputs, outputs and dimensions), `weights`, `shapes` (declared for tensors inside the graph),
    `metadata`, `doc`, `versions`.

    Raises:
        OnnxsmithError: `model/…` if a file is not a valid model, `diff/unknown-part` for an unknown word in `ignore`.
    """
    leave_out = _checked(ignore)
    with stage("load"):
        models = load(old), load(new)
    with stage("pair"), no_collection():
        notes, models, pairs, found = _paired(models)
    with stage("weights"):
        weights = (*found.weights.changes(), *found.unread)
    found.interface += (PortChange("dimension", "dimension renamed", a, a, b) for a, b in found.dimensions.renamed())
    rows = Rows(
        tuple(found.changed),
        tuple(found.regions.found()),
        weights,
        tuple(found.interface),
        tuple(properties.changes(*models, pairs, found)),
    )
    counted, names = Counted(rows, leave_out), renamings(*models, found, pairs)
    missing = sum(row.kind == "unreadable" for row in weights)
    verdict = Verdict.DIFFERENT if counted.counts else Verdict.CANNOT_TELL if missing else Verdict.DONE
    summary = _summary(models, found, counted, names)
    notes += _notes(found, missing)
    headline = f"{_name(old)} → {_name(new)}: {_said(counted, names, missing)}"
    parts = (summary, *counted.parts, *([Renamings(tuple(names))] if names else []))
    return Result(Report("diff", verdict, parts, notes=tuple(notes), headline=headline))


def _checked(ignore: Iterable[str]) -> set[str]:
    words = {ignore} if isinstance(ignore, str) else set(ignore)
    unknown = sorted(words - set(IGNORED))
    if unknown:
        raise problem(
            "diff/unknown-part",
            f"{unknown[0]!r} is nothing that can be ignored",
            fix=f"one of: {', '.join(IGNORED)}",
        )
    return words


def _paired(models: Models) -> tuple[list[str], Models, FunctionPairs, Found]:
    """Pairs the nodes of both models. Functions that only one model has are inlined first, so that their nodes are
    compared with the nodes that the other model has in the place of the calls."""
    notes = _left_out(models)
    sides, pairs = _sides(models)
    inlining = pairs
    if pairs.removed or pairs.added:
        made: list[ir.Model] = []
        for model, names in zip(models, (pairs.removed, pairs.added), strict=True):
            copy, trouble = inlined(model, only=names) if names else (model, "")
            notes += [trouble] if trouble else []
            made.append(copy)
        models = made[0], made[1]
        sides, pairs = _sides(models)
        pairs = FunctionPairs(pairs.pairs, inlining.removed, inlining.added)
    found = Found(Pairs(), WeightPairs(sides[0].constants))
    for one, other in pairs.pairs:
        views = [
            functions.view_of(side, model.functions[name])
            for side, model, name in zip(sides, models, (one, other), strict=True)
        ]
        compare(views[0], views[1], found, by_name=False)
    a, b = (View(side, model.graph, "", model.opset_imports) for side, model in zip(sides, models, strict=True))
    compare(a, b, found, by_name=True)
    return notes, models, pairs, found


def _sides(models: Models) -> tuple[tuple[Side, Side], FunctionPairs]:
    numbers = Numbers()
    constants = Constants(numbers, models)
    plain = Side(numbers, constants, {}), Side(numbers, constants, {})
    pairs = functions.paired(*models, plain)
    ours, theirs = functions.numbered(pairs)
    return (Side(numbers, constants, ours), Side(numbers, constants, theirs)), pairs


def _summary(models: Models, found: Found, counted: Counted, names: list[Renaming]) -> Difference:
    changed = sum(bool(one.op) for one in found.changed)
    return Difference(
        old_nodes=walk.count_nodes(models[0]),
        new_nodes=walk.count_nodes(models[1]),
        paired=len(found.pairs.nodes),
        equal=len(found.pairs.nodes) - changed,
        weights=len(found.weights.pairs()),
        elements=found.weights.elements(),
        changes=dict(counted.counts),
        ignored=dict(counted.ignored),
        names=dict(Counter(one.kind for one in names)),
    )


def _said(counted: Counted, names: list[Renaming], missing: int) -> str:
    if counted.counts and sum(counted.counts.values()) == counted.renamed:
        inside = f", {several(len(names), 'name')} inside the graph" if names else ""
        return f"only names differ ({several(counted.renamed, 'name')} of inputs, outputs or dimensions{inside})"
    if counted.counts:
        return ", ".join(several(count, noun) for noun, count in counted.counts.items())
    if missing:
        return f"equal as far as the values can be read; those of {several(missing, 'weight')} are missing"
    if names:
        return f"only names differ ({several(len(names), 'name')} inside the graph)"
    return "equal but for what is ignored" if counted.ignored else "equal"


def _notes(found: Found, missing: int) -> list[str]:
    notes = []
    if found.swapped:
        notes.append(f"operands in another order, without effect: {several(found.swapped, 'node')}")
    if found.moved:
        notes.append(f"an attribute in one model and an equal input in the other: {several(found.moved, 'parameter')}")
    if found.idle:
        notes.append(f"read by nodes of one model only, and held by both: {several(found.idle, 'weight')}")
    if missing:
        notes.append(f"not compared, because the values are missing: {several(missing, 'weight')}")
    return notes


def _left_out(models: Models) -> list[str]:
    parts = dict.fromkeys(part for model in models for part in carried.left_out(model))
    return [f"not compared, because no run needs it: {part}" for part in parts]


def _name(source: Source) -> str:
    return str(source) if isinstance(source, str | Path) else "the model"
