"""Makes the scene of one model or two, with the figures of reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.base.clock import stage
from onnxsmith.base.words import several
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.comparison.graphs.model_pairs import paired
from onnxsmith.graph.files.load import Source, load
from onnxsmith.viewer import scene
from onnxsmith.viewer.broken_models import Faults, read
from onnxsmith.viewer.difference_scene import difference
from onnxsmith.viewer.model_scene import Viewed, viewed
from onnxsmith.viewer.program_panel import listed, recorded
from onnxsmith.viewer.reports import Given, Laid, laid
from onnxsmith.viewer.value_types import with_shapes


def made(sources: Sequence[Source], given: Sequence[Given]) -> tuple[scene.Scene, list[Viewed], Laid]:
    """Returns the scene of one model, or of two with their difference, the models in it, and what reports laid over.

    Raises:
        OnnxsmithError: as `view`.
    """
    models = _read(sources)
    found = laid(given, models.shown)
    return _whole(models, found), models.shown, found


@dataclass(eq=False)
class _Models:
    """The models as they are shown, and the difference of two."""

    shown: list[Viewed]
    difference: scene.Difference | None
    notes: list[str]
    faults: Faults | None = None
    unrelated: str = ""
    """The sentence on two models that have next to nothing in common."""


def _read(sources: Sequence[Source]) -> _Models:
    paths = [Path(source) if isinstance(source, str | Path) else None for source in sources]
    faults: Faults | None = None
    with stage("load"):
        if len(sources) == 1:
            model, faults = read(sources[0])
            models = [model]
        else:  # nodes of a broken graph have no pairs
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
                own, told, trouble = model, "as the file declares them, because the graph is broken", None
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
        headline += f": {several(len(models[0].nodes.name), 'node')}"
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
    """Counts changes; removed and added nodes that compute what nodes of the other model compute, or that compute only
    from stored tensors, are counted apart."""
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
