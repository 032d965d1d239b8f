"""Reports on a model: its outline, its nodes, its tensors, its text, or all facts about one name."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.item_views import ModelText
from onnxsmith.base.report.parts.model_summary import ModelSummary
from onnxsmith.base.report.parts.written_files import written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files import closed_axes
from onnxsmith.graph.files.light_message import Message, light_message
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.text import to_text
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.reading import compiled_files, compiled_nodes
from onnxsmith.graph.reading.program_lines import of_model as program_of
from onnxsmith.graph.reading.weights import held
from onnxsmith.graph.shapes.needed_shapes import needed
from onnxsmith.graph.shapes.symbolic_inference import inferred, inferred_doubting
from onnxsmith.graph.structure import carried_fields, walk
from onnxsmith.graph.structure.dim_ranges import Sizes, one_size, read
from onnxsmith.runtimes._lenient import checked
from onnxsmith.viewer.inspection import lookup, tables
from onnxsmith.viewer.inspection.costs.cost_report import costs as costs_of
from onnxsmith.viewer.inspection.model_outline import counted, headline, summary
from onnxsmith.viewer.inspection.weight_file import WeightFile, check_target, write_weights


@identifies("source")
def inspect(
    source: Source,
    *,
    nodes: bool = False,
    tensors: bool = False,
    text: bool = False,
    name: str | None = None,
    costs: bool = False,
    sizes: Sizes | None = None,
    weights: str | Path | None = None,
    program: bool = False,
) -> Report:
    """Reports on a model: its outline, and, on request, tables of its `nodes` and `tensors` and its ONNX `text`.

    With `costs` or `sizes` (of symbolic dimensions, by name), the report has multiply-accumulates, parameters and
    memory by torch module, as formulas and at these sizes; other dimensions get an example size. With `name`, the
    report has all facts about the nodes and tensors of that name instead of the outline.

    With `program`, the report has the program from which the model was exported, as far as the nodes record it, with
    the nodes that came from each line. With `weights`, a path to a `.safetensors` or `.npz`, all stored tensors are
    written there.

    Nothing is run, except for the costs of a model whose sizes inference does not know. The values of weights are read
    only for `weights`, `tensors`, and for a named tensor. Contradicting shapes, axes that are declared dynamic and fit
    one size only, and tensors without values are problems of the report. A model without some of its values is not
    checked against the specification, because the checker needs them.

    Raises:
        OnnxsmithError: `model/…` when the file is not a valid model, `inspect/unknown-name` when nothing is called
            `name`, `inspect/unknown-dim` when `sizes` names a dimension that the model lacks, `inspect/misfit-dim`
            when the model does not run at them; `inspect/no-program` when no node records its program; `save/…`,
            `bundle/suffix`, `inspect/weights-missing` and `inspect/weights-dtype` when the weights cannot be written.
    """
    target = None if weights is None else Path(weights)
    if target is not None:
        check_target(target)
    path = Path(source) if isinstance(source, str | Path) else None
    where = "the model" if path is None else str(path)
    with stage("load"):
        model = load(source)
        if model is not source:
            walk.mark_flat(model)
    refuse_loss([target], [source, model])
    tensors_held = list(held(model))
    missing = any(item.missing for item in tensors_held)
    message = None if missing else _message(model)
    with stage("check"):
        doubts = checked(model, where=where, message=message) if not missing else ()
    with stage("shapes"):
        stuck = closed_axes.closed(model, message) if not missing else ()
        with needed(model, counted(model)) as is_known:
            shaped, trouble = (model, None) if is_known and name is None and not nodes else inferred(model)
            outline = summary(model, shaped, path, tensors_held)
    parts: list[Part] = [outline] if name is None else list(_named(shaped, name, where))
    compiled = compiled_nodes.of_model(model, path) if name is None else None
    parts += [] if compiled is None else [compiled]
    own = {one.file for one in compiled.nodes} if compiled is not None else set[str]()
    if nodes:
        parts.append(tables.node_table(shaped))
    if tensors:
        with stage("statistics"):
            parts.append(tables.tensor_table(model))
    if costs or sizes:
        with stage("costs"):
            declared = {value.name or "": value.shape for value in model.graph.outputs if value.shape is not None}
            parts.append(costs_of(inferred_doubting(model), one_size(read(sizes)), where, declared))
    if program:
        parts.append(program_of(model, where))
    if text:
        parts.append(ModelText(to_text(model)))
    told: WeightFile | None = None
    if target is not None:
        with stage("weights"):
            told = write_weights(model, target, where)
        parts.append(written([target]))
    return Report(
        command="inspect",
        verdict=Verdict.DONE,
        parts=tuple(parts),
        problems=(
            *doubts,
            *(closed_axes.problem_of(one, where) for one in stuck),
            *_missing(outline, where),
            *(told.problems if told is not None else ()),
        ),
        notes=(
            *_notes(outline, trouble, carried_fields.left_out(model), path, own),
            *(told.notes if told is not None else ()),
        ),
        headline=headline(outline),
    )


def _message(model: ir.Model) -> Message | None:
    """Returns the message that the check and the search for closed axes read; None if it cannot be written. The check
    then says why."""
    try:
        return light_message(model)
    except Exception:  # noqa: BLE001 — whatever onnx-ir raises while it writes; the check tries again and reports it
        return None


def _named(shaped: ir.Model, name: str, where: str) -> tuple[Part, ...]:
    found = lookup.views(shaped, name)
    if found:
        return found
    close = lookup.similar(shaped, name)
    raise problem(
        "inspect/unknown-name",
        f"no node, tensor, input or output is called {name!r}",
        where=where,
        fix=f"similar names: {', '.join(close)}" if close else "--nodes lists every node and tensor of the model",
    )


def _missing(outline: ModelSummary, where: str) -> list[Problem]:
    if not outline.missing:
        return []
    count, first = len(outline.missing), ", ".join(outline.missing[:3])
    return [
        Problem(
            "inspect/weights-missing",
            f"the values of {count:,} tensors are missing" if count > 1 else "the values of a tensor are missing",
            where=f"{where}: {first}{', …' if count > 3 else ''}",
            why="their external data is missing, or they were removed from the model; so the model was not checked "
            "against the specification",
            fix="give the path of the .onnx file, with its data files beside it",
        )
    ]


def _notes(
    outline: ModelSummary, trouble: str | None, left_out: tuple[str, ...], path: Path | None, own: set[str]
) -> list[str]:
    notes = [trouble] if trouble else []
    notes += [f"a part of the file was not read, because no run needs it: {part}" for part in left_out]
    if not outline.elements:
        notes.append("the model has no weights")
    if path is not None and (beside := compiled_files.note_on(path, own)):
        notes.append(beside)
    if outline.foreign:
        notes.append(f"operators that only some runtimes support: {', '.join(outline.foreign)}")
    return notes
