"""Runs the command `view`: shows a model, or the difference between two models, in one HTML page or as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnxsmith.base.clock import stage
from onnxsmith.base.folders import replacing
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.written_files import View, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import pasted, size
from onnxsmith.graph.files.load import Source
from onnxsmith.graph.files.output_paths import refuse_loss, refuse_other_than_page
from onnxsmith.graph.files.save import disk_problems
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure import tensor_paths
from onnxsmith.viewer import scene
from onnxsmith.viewer.html_page import to_html
from onnxsmith.viewer.model_scene import Viewed
from onnxsmith.viewer.page_links import fragment
from onnxsmith.viewer.reports import Laid, read
from onnxsmith.viewer.scene_assembly import made

LARGE = 50_000_000
"""Counts the bytes from which a page is slow to open from a file. A choice: browsers parse some 50 MB of JSON in a
second."""
_STATES = (
    "equal",
    "other attributes",
    "other weights",
    "other attributes and weights",
    "other operator",
    "other wiring",
)


@identifies("model", "new")
def view(
    model: Source,
    new: Source | None = None,
    *,
    output: str | Path | None = None,
    reports: Sequence[str | Path | Report] = (),
    svg: str | Path | None = None,
    png: str | Path | None = None,
    module: str = "",
) -> Result:
    """Shows a model in one HTML page that needs no network; with `new`, also the differences between the two models.

    The page is written to `output`. Without `output` the page is only in the result, which a notebook shows in place.
    `reports` are reports of other verbs, or paths of reports that `--json` wrote; their figures colour the nodes.

    `svg` and `png` are paths of pictures of one level of the model: of `module` (a torch module, scope, branch or
    function, by its path) or of the main graph. The picture has the first colours of `reports`. The page opens at
    `module`. Nothing is run. Weights are read for statistics, up to 64 MB, but are not in the page.

    Raises:
        OnnxsmithError: `model/…` if a file is not a valid model; `view/no-module` if nothing is called `module`;
            `view/report`, `report/unreadable`, `view/no-figures`, `view/other-model` for a report; `save/…` if a file
            cannot be written. After an error, nothing is written.
    """
    if png is None and svg is not None and Path(svg).suffix.lower() == ".png":
        svg, png = None, svg
    elif svg is None and png is not None and Path(png).suffix.lower() == ".svg":
        svg, png = png, None
    targets = [Path(path) for path in (output, svg, png) if path]
    given = [read(one) for one in reports]
    refuse_loss(targets, [model, new, *(one for one in reports if not isinstance(one, Report))])
    if output:
        refuse_other_than_page(str(output))
    with no_collection():
        whole, shown, found = made([model] if new is None else [model, new], given)
        start = _room(shown[-1], module).path if module else ""
        whole.start = fragment(room=start, model=len(shown) - 1) if start else ""
        with stage("page"):
            page = to_html(whole)
        last = len(shown) - 1
        overlay = next((one for one in whole.overlays if one.model == last), None)
        pictures, notes = _pictures(shown[-1], module, svg, png, overlay)
    if whole.start and output:
        notes.append(f"the level {module} is at {output}{whole.start}")
    if output and len(page) > LARGE:
        notes.append(f"the page has {size(len(page))}, which a browser opens slowly from a file: add --serve")
    whole.notes += notes
    files = {Path(output): page.encode()} if output else {}
    _write({**files, **pictures})
    part = _part(whole, shown, found)
    parts: tuple[Part, ...] = (part, written(targets)) if targets else (part,)
    headline = "; ".join([whole.headline, *whole.warnings, *(one.short for one in found.missing)])
    report = Report("view", Verdict.DONE, parts, notes=tuple(whole.notes), headline=headline)
    return Result(report, path=Path(output) if output else None, page=page)


def _part(whole: scene.Scene, shown: Sequence[Viewed], found: Laid) -> View:
    pairs = None
    if whole.difference is not None:
        pairs = dict.fromkeys(_STATES, 0)
        for _, _, state in whole.difference.pairs:
            pairs[_STATES[state]] += 1
        rounded = len(whole.difference.rounded)
        if rounded:
            pairs["equal"] -= rounded
            pairs["equal up to rounding"] = rounded
        pairs |= {"removed": len(whole.difference.removed), "added": len(whole.difference.added)}
    names = [model.name for model in whole.models]
    if len(set(names)) < len(names):
        names = [model.path or f"model {at}" for at, model in enumerate(whole.models, 1)]
    return View(
        {name: len(model.nodes.name) for name, model in zip(names, whole.models, strict=True)},
        {name: len(model.rooms) for name, model in zip(names, whole.models, strict=True)},
        tuple(layer.title for layer in whole.overlays),
        {title: (some, of) for title, some, of in found.matched},
        pairs,
        len(whole.program.lines) if whole.program is not None else 0,
        found.origins,
        _otherwise(whole.difference),
        _of_weights(whole.difference),
        {name: one.constants for name, one in zip(names, shown, strict=True)},
    )


def _otherwise(found: scene.Difference | None) -> dict[str, int]:
    if found is None or not found.regions:
        return {}
    removed, added = found.otherwise()
    return {"removed": removed, "added": added, "regions": len(found.regions)}


def _of_weights(found: scene.Difference | None) -> dict[str, int]:
    if found is None or not any(found.stored):
        return {}
    return dict(zip(("removed", "added"), map(len, found.stored), strict=True))


def _pictures(
    shown: Viewed, module: str, svg: str | Path | None, png: str | Path | None, overlay: scene.Overlay | None
) -> tuple[dict[Path, bytes], list[str]]:
    room = _room(shown, module)
    if svg is None and png is None:
        return {}, []
    from onnxsmith.viewer.picture.drawing import draw  # Pillow is slow to import
    from onnxsmith.viewer.picture.png import to_png
    from onnxsmith.viewer.picture.svg import to_svg

    with stage("picture"):
        picture = draw(shown.scene, room, overlay)
        files: dict[Path, bytes] = {}
        notes = []
        if svg is not None:
            files[Path(svg)] = to_svg(picture).encode()
        if png is not None:
            files[Path(png)], note = to_png(picture)
            notes = [note] if note else []
    return files, notes


def _room(shown: Viewed, module: str) -> scene.Room:
    if not module:
        return shown.scene.rooms[0]
    if module in shown.aliases:
        return shown.scene.rooms[shown.aliases[module]]
    bodies = _bodies(shown.scene, module)
    if len(bodies) == 1:
        return bodies[0]
    if bodies:
        raise problem(
            "view/no-module",
            f"{module!r} is a node with {len(bodies)} bodies",
            where=shown.scene.path or "the model",
            why="a picture can show only one level",
            fix=f"give one of them: {', '.join(f'--module {pasted(body.path)}' for body in bodies)}",
        )
    known = [path for path in shown.aliases if path]
    near = tensor_paths.near(module, known) or known[:5]
    raise problem(
        "view/no-module",
        f"no level of the model is called {module!r}",
        where=shown.scene.path or "the model",
        why="a module with fewer than 3 nodes has no level of its own; its nodes are drawn in the surrounding module"
        if known
        else "the model has only one level, because its nodes name no modules and no block of nodes repeats",
        fix=f"similar: {', '.join(near)}" if known else "leave --module out: the whole graph is drawn",
    )


def _bodies(model: scene.Model, name: str) -> list[scene.Room]:
    """Returns the branches, the body or the function of the node with this name."""
    nodes = zip(model.nodes.name, model.nodes.bodies, strict=True)
    return [model.rooms[room] for one, bodies in nodes if one == name for _, room in bodies]


def _write(files: dict[Path, bytes]) -> None:
    for path, data in files.items():
        with disk_problems(path, "the file could not be written"), replacing(path) as aside:
            aside.write_bytes(data)
