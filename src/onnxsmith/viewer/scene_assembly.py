"""Makes the scene of one model or of two, with the figures of reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Program
from onnxsmith.base.words import first_few, nodes_and_constants, several
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.comparison.graphs.model_pairs import paired
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.reading.program_lines import of_model
from onnxsmith.graph.reading.scopes import nodes
from onnxsmith.graph.shapes.symbolic_inference import infer_in_place
from onnxsmith.graph.structure import captures, carried_fields, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.walk import node_label, op_name
from onnxsmith.viewer import scene
from onnxsmith.viewer.broken_models import Faults, read
from onnxsmith.viewer.difference_scene import difference
from onnxsmith.viewer.model_scene import Viewed, viewed
from onnxsmith.viewer.reports import Given, Laid, laid


def made(sources: Sequence[Source], given: Sequence[Given]) -> tuple[scene.Scene, list[Viewed], Laid]:
    """Returns the scene of one model, or of two with their difference; the models in it; and the overlays of the
    reports.

    Raises:
        OnnxsmithError: the errors of `view`.
    """
    models = _read(sources)
    found = laid(given, models.shown)
    return _whole(models, found), models.shown, found


@dataclass(eq=False)
class _Models:
    """Holds the shown models, and the difference if there are two."""

    shown: list[Viewed]
    difference: scene.Difference | None
    notes: list[str]
    faults: Faults | None = None
    unrelated: str = ""
    """Says in a sentence that the two models have next to nothing in common; "" if they have more."""


def _read(sources: Sequence[Source]) -> _Models:
    paths = [Path(source) if isinstance(source, str | Path) else None for source in sources]
    faults: Faults | None = None
    with stage("load"):
        if len(sources) == 1:
            model, faults = read(sources[0])
            models = [model]
        else:  # nodes of a broken graph are not paired
            models = [load(source) for source in sources]
    notes: list[str] = []
    found: Found | None = None
    if len(models) == 2:
        with stage("pair"):
            notes, both, _, found = paired((models[0], models[1]))
            models = list(both)
    shown = []
    for model, path in zip(models, paths, strict=True):
        with stage("shapes"):
            if faults is not None and faults.of_graph:
                own, told, trouble = model, "shapes as the file declares them, because the graph is broken", None
            else:
                own, told, trouble = with_shapes(model, own=path is not None)
        shown.append(viewed(own, path, told))
        notes += [trouble] if trouble else []
        notes += [f"{path.name}: {note}" if len(models) > 1 and path else note for note in shown[-1].notes]
    if found is None:
        return _Models(shown, None, notes, faults)
    with stage("difference"):
        return _Models(shown, difference(models, found, shown), notes, unrelated=found.unrelated)


def _whole(made: _Models, found: Laid) -> scene.Scene:
    models = [one.scene for one in made.shown]
    program = None
    last = made.shown[-1]
    for name, one in found.programs:
        program = listed(one, f"{one.origin}, in {name}", last.source, last.scene, last.nodes)
    if program is None and (own := recorded(last.source)) is not None:
        program = listed(own, "the metadata of the nodes", last.source, last.scene, last.nodes)
    headline = " → ".join(model.name for model in models)
    if made.difference is None:
        headline += f": {nodes_and_constants(len(models[0].nodes.name), made.shown[0].constants)}"
    else:
        headline += f": {made.unrelated or _difference(made.difference)}"
    overlays, warnings = found.overlays, found.warnings
    if made.faults is not None:
        marked = made.faults.overlay(last)
        overlays = [*([marked] if marked is not None else ()), *overlays]
        warnings = [*made.faults.lines(), *warnings]
    notes = [*made.notes, *found.notes, *(one.long for one in found.missing)]
    return scene.Scene(headline, notes, models, overlays, made.difference, program, warnings)


def _difference(found: scene.Difference) -> str:
    """Counts the changes in words. Removed and added nodes that compute the same as nodes of the other model, or that
    compute only from stored tensors, are counted separately."""
    changed = sum(state != 0 for _, _, state in found.pairs)
    removed, added = found.otherwise()
    counts = (
        (changed, "changed"),
        (len(found.removed) - removed - len(found.stored[0]), "removed"),
        (len(found.added) - added - len(found.stored[1]), "added"),
        (removed + added, "computed otherwise"),
        (len(found.stored[0]), "of weights alone removed"),
        (len(found.stored[1]), "of weights alone added"),
        (len(found.rounded), "equal up to rounding"),
    )
    said = [f"{several(count, 'node')} {what}" for count, what in counts if count]
    return ", ".join(said) or "all nodes are equal"


# Gives the values of a model their types, by inference where the file does not declare them.

_MANY = 5000
"""Counts the nodes from which inference is skipped if the file declares all shapes. Measured: inference takes a second
for 15,000 nodes."""
_SHOWN = 3
"""Limits the nodes that a note names. A choice: one line."""


def with_shapes(model: ir.Model, *, own: bool) -> tuple[ir.Model, str, str | None]:
    """Returns the model with all known types, a text on their origin, and a note on problems. A model is copied first
    unless it is the caller's `own`."""
    model = model if own else cloned(model)
    walk.mark_flat(model)
    values = [value for node in walk.all_nodes(model) for value in node.outputs if value.name]
    if len(values) > _MANY and all(value.shape is not None and value.type is not None for value in values):
        return model, "as the file declares them", None
    trouble = infer_in_place(model, elements=True)
    unknown = [value for value in values if value.shape is None]
    told = f"{len(values) - len(unknown):,} of {len(values):,} inferred from the inputs"
    return model, told, "; ".join(filter(None, (trouble, _unknown(unknown)))) or None


def _unknown(values: Sequence[ir.Value]) -> str:
    """Counts the results without a known shape, and names the nodes at which such results begin; "" if there are no
    such results. Maps do not count, because they have no shape."""
    values = [value for value in values if value.type is not None or carried_fields.odd_type(value) is None]
    lost = set(values)
    first = dict.fromkeys(
        f"{op_name(made)} {node_label(made)}".strip()
        for value in values
        if (made := value.producer()) is not None and not any(read in lost for read in captures.reads(made))
    )
    if not values:
        return ""
    shown = first_few(first, _SHOWN)
    return f"the shapes of {several(len(values), 'result')} are unknown" + (f", from here on: {shown}" if shown else "")


# Shows the program that a model was captured from, beside the nodes that came from each line.


def recorded(source: ir.Model) -> Program | None:
    """Returns the program that the metadata of the nodes records; None if the metadata records no program."""
    if not any(node.metadata_props or node.doc_string for node in walk.all_nodes(source)):
        return None
    try:
        return of_model(source, "the model")
    except OnnxsmithError:
        return None


def listed(
    program: Program, origin: str, source: ir.Model, model: scene.Model, numbers: dict[ir.Node, int]
) -> scene.Program:
    """Makes the lines of the page. Source lines and modules that the scene lacks are added to it."""
    by_name: dict[tuple[str, str], list[int]] = {}
    for scope, node in nodes(source):
        if node in numbers:
            by_name.setdefault((scope.path, node.name or node_label(node)), []).append(numbers[node])
    sources = {f"{one['file']}:{one['line']}": at for at, one in reversed(list(enumerate(model.sources)))}
    modules = {one["path"]: at for at, one in reversed(list(enumerate(model.modules)))}
    lines = []
    for line in program.lines:
        held = [number for one in line.nodes for number in by_name.get((one.scope, one.name), ())]
        lines.append(
            {
                "name": line.name,
                "text": "  " * line.depth + (line.text or line.code),
                "source": _source(line.source, line.code, sources, model),
                "module": _module(line.module, modules, model),
                "nodes": list(dict.fromkeys(held)),
            }
        )
    return scene.Program(origin, lines)


def _source(place: str, code: str, known: dict[str, int], model: scene.Model) -> int:
    file, _, line = place.rpartition(":")
    if not file or not line.isdigit():
        return -1
    if place not in known:
        known[place] = len(model.sources)
        model.sources.append({"file": file, "line": int(line), "text": code})
    return known[place]


def _module(path: str, known: dict[str, int], model: scene.Model) -> int:
    if not path:
        return -1
    if path not in known:
        known[path] = len(model.modules)
        model.modules.append({"path": path, "type": ""})
    return known[path]
