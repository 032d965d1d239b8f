"""Defines `split`, which divides a model into pieces, and verifies that the pieces together compute what the model
computes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base import devices, folders
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.parts.verification import Verification, nothing_verified
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save, Verify, verifying
from onnxsmith.base.system import moving
from onnxsmith.base.words import first_few, pasted, several
from onnxsmith.editor.node_selectors import Selecting, shown
from onnxsmith.editor.piecewise import compared_in_turn
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import free_path
from onnxsmith.graph.files.save import as_read, disk_problems, save_for_now
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import versions, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import partition
from onnxsmith.graph.surgery.graph_cuts import keep_needed
from onnxsmith.graph.surgery.names import take_over_sizes
from onnxsmith.verification import free_values
from onnxsmith.verification.inputs.size_limits import refuse_unknown
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.observed_outputs import declared_as_run
from onnxsmith.verification.output_declarations import with_clauses
from onnxsmith.verification.run import planned, run
from onnxsmith.verification.runtime_choice import LACKS
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verification_verdict import ending, problems, verdict

INDEX = "pieces.json"
_LONGEST = 60.0
"""Limits the seconds for which the pieces are run one after the other. A choice: each piece starts a process of the
runtime."""


@identifies("source")
def split(
    source: Source,
    folder: str | Path,
    *,
    into: int | None = None,
    at: Iterable[Any] = (),
    nodes: bool = False,
    by_nodes: bool = False,
    verify: Verify | bool = True,
    save: Save = Save(),
) -> Result:
    """Divides a model into files `piece_0.onnx`, `piece_1.onnx`, … in a new folder. Each piece is a model that runs by
    itself. `pieces.json` says which piece or graph input provides each input, and which piece provides each output.

    Give one of `into`, `at` and `nodes`. `into` is the number of pieces; they have about the same bytes of weights, or
    with `by_nodes` the same number of nodes. `at` are tensors of the main graph that end pieces. `nodes` makes a piece
    for each node. Pieces exchange tensors only. Constants and weights that several pieces read are copied into each of
    these pieces.

    The files are read again and joined to one model, which is compared with the original. The pieces are also run one
    after the other, each on the results of earlier pieces, and compared with the original again. Nothing stays in the
    folder if a comparison fails.

    Raises:
        OnnxsmithError: `split/how`, `split/folder`, `split/one-piece`, `split/piece-does-not-run`; `model/…` for a
            source that cannot be read; errors of `verify`.
    """
    settings = verifying(verify)
    tensors = [at] if isinstance(at, str) else list(at)
    _refuse_unclear(into, tensors, nodes)
    target = Path(folder)
    _refuse_full(target)
    with Clock() as clock:
        with stage("load"):
            model = load(source) if isinstance(source, str | Path) else cloned(load(source))
            if settings is not None:
                refuse_unknown(settings.sizes, signature(model))
                free_values.read(settings.free, [port.name for port in signature(model).outputs])
            wrong = declared_as_run(model, settings)
        with stage("split"):
            shaped = _shaped(model)
            count = walk.count_nodes(shaped)
            keep_needed(shaped.graph)
            unneeded = count - walk.count_nodes(shaped)
            parts = divided(shaped, into, tensors, nodes, by_nodes)
            pieces = partition.pieces_of(shaped, parts)
            index = _index(model, pieces, source)
        notes = _notes(model, pieces, into, nodes)
        notes += [f"left out: {several(unneeded, 'node')} that no output needs"] if unneeded else []
        with disk_problems(target), folders.beside(target) as temporary:
            place = temporary / target.name
            place.mkdir()
            files = []
            for entry, piece in zip(index["pieces"], pieces, strict=True):
                take_over_sizes(piece.model, model)
                facts.forget(piece.model)
                versions.drop_unused_imports(piece.model)
                check(piece.model, where=entry["file"])
                save_for_now(piece.model, place / entry["file"], external_data=as_read(model, save.external_data))
                files.append(place / entry["file"])
            (place / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            part = with_clauses(_verified(model, files, settings), *wrong)
            if settings is not None and not part.differs:
                notes += _run_in_turn(model, files, index, settings)
                part = compared_in_turn(model, composed(files, model), files, settings, part)
            good = settings is None or part.equal or (bool(part.unsure) and save.write_unsure)
            done = Written({}, "the pieces together differ from the model")
            if good:
                if target.is_dir():
                    target.rmdir()
                moving.HERE.move(place, target)
                done = Written({str(file): file.stat().st_size for file in sorted(target.iterdir())})
    name = str(source) if isinstance(source, str | Path) else "the given model"
    report = Report(
        command="split",
        verdict=verdict(part, asked=settings is not None),
        headline=f"{name}: {several(len(pieces), 'piece')}, {ending(part)}",
        parts=(Edits(_said(index), notes=tuple(notes)), part, done, Timing(clock.passed())),
        problems=problems(part, asked=settings is not None),
    )
    return Result(report, None, target if done.files else None)


def composed(files: Sequence[Path], like: ir.Model) -> ir.Model:
    """Joins the pieces to one model by the names of their tensors. The joined model has the inputs and outputs of
    `like`."""
    whole = cloned(like)
    graph = whole.graph
    inputs, results = list(graph.inputs), [value.name or "" for value in graph.outputs]
    old = list(graph)
    graph.outputs.clear()
    graph.remove(old)
    for name in [name for name, value in graph.initializers.items() if value not in inputs]:
        del graph.initializers[name]
    whole.functions.clear()
    seen = {value.name or "": value for value in inputs}
    names = Names(whole)
    for file in files:
        piece = cloned(load(file))
        ports, outputs = list(piece.graph.inputs), list(piece.graph.outputs)
        weights = [value for value in piece.graph.initializers.values() if value not in ports]
        nodes = list(piece.graph)
        piece.graph.inputs.clear()
        piece.graph.outputs.clear()
        piece.graph.initializers.clear()
        piece.graph.remove(nodes)
        for port in ports:
            port.replace_all_uses_with(seen[port.name or ""])
        seen |= {value.name or "": value for value in outputs}
        for value in weights:
            value.name = names.free(f"{file.stem}/{value.name}")
            graph.register_initializer(value)
        graph.extend(nodes)
        whole.functions.update(piece.functions)
    graph.outputs.extend(seen[name] for name in results)
    for value, name in zip(graph.outputs, results, strict=True):
        value.name = name
    return whole


def _shaped(model: ir.Model) -> ir.Model:
    """Returns the model with inferred shapes. Before IR version 4 each weight is an input that a caller may replace. If
    a shape depends on such a weight, only the rank is taken from the weight's value."""
    shaped = inferred(model)[0]
    open_ = [value for node in shaped.graph for value in node.outputs if value.name and value.shape is None]
    if open_ and any(value.is_initializer() for value in shaped.graph.inputs):
        fixed = cloned(model)
        for value in [value for value in fixed.graph.inputs if value.is_initializer()]:
            fixed.graph.inputs.remove(value)
        known = {value.name: value for node in inferred(fixed)[0].graph for value in node.outputs}
        for value in open_:
            found = known[value.name].shape
            if found is not None:
                value.type, value.shape = known[value.name].type, ir.Shape([None] * len(found))
    return shaped


def _refuse_unclear(into: int | None, tensors: list[Any], nodes: bool) -> None:
    given = [into is not None, bool(tensors), nodes]
    if sum(given) != 1 or (into is not None and into < 2):
        raise problem(
            "split/how",
            "where should the model be divided?" if sum(given) != 1 else f"{into} is not a number of pieces",
            why="exactly one of --into, --at and --nodes has to be given",
            fix="give --into 2 for 2 pieces, or --nodes for one piece per node, or --at TENSOR to end a piece at a "
            "tensor",
        )


def _refuse_full(folder: Path) -> None:
    devices.refuse(folder, streams=False)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise problem(
            "split/folder",
            "the output is a file" if folder.is_file() else "the folder is not empty",
            where=str(folder),
            why="the pieces need an empty or new folder",
            fix=f"give the path of a new folder: -o {pasted(free_path(folder))}",
        )
    refuse_missing(folder.absolute().parent)


def _index(model: ir.Model, pieces: Sequence[partition.Piece], source: Source) -> dict[str, Any]:
    width = len(str(len(pieces) - 1))
    files = [f"piece_{number:0{width}}.onnx" for number in range(len(pieces))]
    entries = []
    giving: dict[str, str | None] = {value.name or "": None for value in model.graph.inputs}
    for file, piece in zip(files, pieces, strict=True):
        outputs = [value.name or "" for value in piece.model.graph.outputs]
        inputs = {name: None if of is None else files[of] for name, of in piece.sources.items()}
        entries.append({"file": file, "nodes": piece.nodes, "inputs": inputs, "outputs": outputs})
        giving |= dict.fromkeys(outputs, file)
    return {
        "format": 1,
        "model": str(source) if isinstance(source, str | Path) else "",
        "inputs": [value.name or "" for value in model.graph.inputs],
        "outputs": {value.name or "": giving[value.name or ""] for value in model.graph.outputs},
        "pieces": entries,
    }


def _said(index: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    def listed(names: list[str]) -> str:
        return first_few(names, 4) or "nothing"

    return tuple(
        (one["file"], f"{several(one['nodes'], 'node')}: {listed(list(one['inputs']))} → {listed(one['outputs'])}")
        for one in index["pieces"]
    )


def _notes(model: ir.Model, pieces: Sequence[partition.Piece], into: int | None, nodes: bool) -> list[str]:
    notes = []
    if into is not None and len(pieces) < into:
        notes.append(f"{into} pieces were requested, but the model can be divided into only {len(pieces)}")
    if nodes and any(piece.nodes > 1 for piece in pieces):
        notes.append("nodes stay together where a list, an optional or a value of unknown shape connects them")
    held = [value.const_value for piece in pieces for value in piece.model.graph.initializers.values()]
    twice = sum(tensor.nbytes for tensor in held if tensor is not None) - sum(
        tensor.nbytes for tensor in {id(tensor): tensor for tensor in held if tensor is not None}.values()
    )
    if twice > 0:
        notes.append(
            f"weights that several pieces read are stored in each of these pieces: {twice:,} bytes more than in the "
            "model"
        )
    return notes


def _verified(model: ir.Model, files: Sequence[Path], settings: Verify | None) -> Verification:
    names = ("the original", "the pieces together")
    if settings is None:
        return nothing_verified(*names, "--no-verify was given")
    whole = composed(files, model)
    check(whole, where="the pieces together")
    return verify_models(model, whole, settings, names=names)


def _run_in_turn(model: ir.Model, files: Sequence[Path], index: dict[str, Any], settings: Verify) -> list[str]:
    """Runs each file on the results of the files before it. Returns a note."""
    plan = planned(model, signature(model), sizes(settings.sizes), settings.seed)
    held: dict[str, Any] = dict(plan.generator.feed(dict(plan.start or {}), seed=settings.seed).values)
    start = time.monotonic()
    try:
        run(model, held, runtime=settings.runtime)
    except OnnxsmithError as error:
        return [
            f"the pieces were not run one after the other: the original does not run on the input ({error.problem.id})"
        ]
    for number, (file, entry) in enumerate(zip(files, index["pieces"], strict=True)):
        if time.monotonic() - start > _LONGEST:
            return [f"the first {number} of {len(files)} pieces were run one after the other, for {_LONGEST:.0f} s"]
        try:
            held |= run(
                file, {name: held[name] for name in entry["inputs"] if name in held}, runtime=settings.runtime
            ).outputs
        except OnnxsmithError as error:
            if error.problem.id in LACKS:
                return [
                    (
                        f"the first {number} of {len(files)} pieces were run one after the other; the runtime does not "
                        "support a part of the next piece"
                    )
                ]
            raise problem(
                "split/piece-does-not-run",
                f"{entry['file']} does not run by itself",
                where=error.problem.where,
                why=f"{error.problem.id}: {error.problem.what}. {error.problem.why}".strip(),
                fix="divide the model at another tensor: --at TENSOR; nothing was written",
            ) from error
    return [f"all {len(files)} pieces were run one after the other"]


_SHOWN = 3
"""Limits the tensors that a reason names. A choice: one line."""


def divided(model: ir.Model, into: int | None, tensors: list[Any], nodes: bool, by_nodes: bool) -> list[list[ir.Node]]:
    """Returns the nodes of each piece.

    Raises:
        OnnxsmithError: `split/one-piece` if the model cannot be divided as requested; errors of a selector.
    """
    if nodes:
        found = partition.inseparable(model.graph)
    elif into is not None:
        found = partition.in_ranges(model.graph, into, by_nodes=by_nodes)
    else:
        found = partition.at_tensors(model.graph, [_cut(model, one) for one in tensors])
        _refuse_lists(found, model.graph)
    if len(found) < 2:
        raise problem(
            "split/one-piece",
            f"the model would stay in {several(len(found), 'piece')}",
            why=_why_one(model, tensors),
            fix=_with_ends(model.graph, "end a piece at"),
        )
    return found


def _why_one(model: ir.Model, tensors: list[Any]) -> str:
    nodes = partition.computing(model.graph)
    if len(nodes) < 2:
        return f"the model has only {several(len(nodes), 'node')} besides constants"
    if tensors:
        return f"{', '.join(map(_shown_selector, tensors))} needs every node: nothing is left for a second piece"
    lists = [
        value.name or "" for node in nodes for value in node.outputs if value.uses() and not partition.may_cross(value)
    ]
    return (
        f"all nodes are connected through {first_few(lists, _SHOWN)}: pieces can exchange only tensors of a known "
        "number of dimensions, not lists, optionals or maps"
    )


def _cut(model: ir.Model, selector: Any) -> ir.Value:
    value = Selecting(model).tensor(selector)
    producer = value.producer()
    if producer is None or producer.graph is not model.graph:
        raise problem(
            "split/one-piece",
            f"no piece can end at {value.name!r}",
            why="the tensor is a graph input or a weight, or it is inside a branch or a body",
            fix=_with_ends(model.graph, "write", f" in place of {value.name}"),
        )
    return value


def _with_ends(graph: ir.Graph, before: str, after: str = "") -> str:
    """Returns a fix that names a few tensors at which a piece may end; another fix if there are none."""
    nodes = partition.computing(graph)
    names = [
        value.name or "" for node in nodes for value in node.outputs if value.uses() and partition.may_cross(value)
    ]
    ends = list(dict.fromkeys(names))[:_SHOWN]
    return f"{before} {' or '.join(ends)}{after}" if ends else "use the model as it is: it has no second piece"


def _refuse_lists(divided: list[list[ir.Node]], graph: ir.Graph) -> None:
    of = {node: at for at, piece in enumerate(divided) for node in piece}
    for at, piece in enumerate(divided):
        for value in partition.reads(piece, graph):
            producer = value.producer()
            if producer is None or of.get(producer, at) == at:
                continue
            if not partition.may_cross(value):
                kind = "no tensor" if value.type is not None and value.shape is not None else "of unknown shape"
                raise problem(
                    "split/one-piece",
                    f"{value.name!r} would go from piece {of[producer]} to piece {at}, but is {kind}",
                    why="pieces can exchange only tensors of a known number of dimensions: few runtimes accept "
                    "lists as inputs, and the specification requires a shape for each input and output",
                    fix="end the piece at a tensor before or after it",
                )


def _shown_selector(selector: Any) -> str:
    return selector if isinstance(selector, str) else shown(selector)
