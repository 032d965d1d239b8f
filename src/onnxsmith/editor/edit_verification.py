"""Verifies an edited model: compares everything that should stay the same with the original, and runs the rest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import Misdeclared, Verification, nothing_verified
from onnxsmith.base.settings import Verify
from onnxsmith.base.words import pasted
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.graph_cleanup import remove_unneeded
from onnxsmith.editor.size_conflicts import corrected
from onnxsmith.editor.whole_runs import failing, failing_sizes
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.dim_ranges import Size
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.graph.surgery.names import rename_ports
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Session
from onnxsmith.verification import free_values, runtime_choice
from onnxsmith.verification.changed_part import Whole, compared_where_changed
from onnxsmith.verification.input_search import Plan
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_limits import refuse_unknown
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.observed_outputs import observed
from onnxsmith.verification.run import accepted, planned, run
from onnxsmith.verification.runtime_choice import FAILS, LACKS, FailsError
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verification_verdict import ending

NAMES = ("the original", "the edited model")
_MOST = 8
"""Limits the tensors in front of edited nodes that are compared. A choice: each tensor is one more output."""
_REFUSALS = frozenset({"runtime/failed", "runtime/died"})
"""Names the problems that a comparison raises if a model does not run."""


@dataclass(frozen=True)
class Start:
    """Holds the original of an edit: its file or graph, its interface, and what makes inputs for it; no `generator` if
    nothing is verified."""

    source: Path | ir.Model
    interface: Signature
    generator: Generator | None

    @classmethod
    def of(cls, source: Path | ir.Model, model: ir.Model, settings: Verify | None) -> Start:
        """Reads the interface and the limits of inputs from the `model` before it is changed."""
        interface = signature(model)
        return cls(source, interface, None if settings is None else Generator.for_model(model).under(interface))


@dataclass(frozen=True)
class Verified:
    """Holds the result of a verification: the comparison, the outputs changed on purpose, and the new outputs."""

    part: Verification
    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    outputs_kept: bool = True
    """Whether outputs were compared, not only tensors that edited nodes read."""

    @property
    def compared(self) -> bool:
        """Whether something was compared."""
        return self.part.verified

    def said(self, *, asked: bool) -> str:
        """Returns the end of the headline; `asked` is False if no verification was wanted."""
        if not asked:
            return ending(self.part)
        if not self.compared:
            return (
                "the edited model runs; it was not compared with the original, because every output is new or "
                "changed on purpose"
            )
        return ending(self.part, "" if self.outputs_kept else "up to the edited nodes")


def verified(
    work: Work,
    start: Start,
    written: Path | ir.Model,
    settings: Verify | None,
    given: tuple[Feed, ...] = (),
) -> Verified:
    """Compares the outputs that no step changes on purpose, and the tensors that changed nodes read, with the original.
    If there are other outputs, runs the model as a whole.

    Raises:
        OnnxsmithError: `edit/does-not-run` if the original runs and the edited model does not,
            `edit/original-does-not-run` if the original does not run either; errors of `verify`.
    """
    affected, original = work.affected(), start.source
    if settings is not None:
        sides = start.interface, signature(work.model)
        refuse_unknown(settings.sizes, *sides)
        free_values.read(settings.free, [port.name for side in sides for port in side.outputs])
    outputs = [value for value in work.model.graph.outputs if value.name]
    changed = tuple(v.name or "" for v in outputs if v in affected and work.outputs.get(v.name or ""))
    new = tuple(v.name or "" for v in outputs if not work.outputs.get(v.name or ""))
    if settings is None:
        return Verified(nothing_verified(*NAMES, "--no-verify was given"), changed, new)
    seen: tuple[Misdeclared, ...] = ()
    failing_at: dict[str, tuple[int, ...]] | None = None
    adapted = bool(work.adapt_candidate)  # the compared copy has other axes or inputs than the file
    not_run = ""
    if changed or new:
        seen, failing_at, not_run = _run(work.model, written, original, settings)
    elif adapted:
        with suppress(OnnxsmithError):  # a new input may take few values
            seen, _ = observed(_without_repeated(written), settings)
    kept = {
        (v.name or ""): work.outputs[v.name or ""] or ""
        for v in outputs
        if v not in affected and work.outputs.get(v.name or "")
    }
    # An adapted candidate has other names inside, so intermediate tensors are not looked for there.
    before = {} if len(kept) == len(outputs) or work.adapt_candidate else _before_changes(work, affected)
    if not kept and not before:
        why = "every output is new or changed on purpose; the edited model was only run"
        nothing = replace(nothing_verified(*NAMES, not_run or why), misdeclared=seen)
        for also in work.also:
            nothing = also(nothing, (original, written), settings, given)
        return Verified(nothing, changed, new)
    wanted = {**kept, **before}
    part = (
        None
        if work.is_adapted
        else _where_changed(work, start, written, wanted, settings, given, has_run=failing_at is not None)
    )
    if part is None:
        part = _as_wholes(work, original, written, kept, before, settings, given)
    part = replace(part, misdeclared=tuple({one.name: one for one in (*seen, *part.misdeclared)}.values()))
    if changed and not adapted:
        part = replace(part, untried=(*part.untried, *_sizes_lost(original, failing_at or {}, settings)))
    if not_run:
        part = replace(part, untried=(*part.untried, not_run))
    if before:
        note = f"compared in front of the edited nodes: {', '.join(before.values())}"
        part = replace(part, notes=(*part.notes, note))
    return Verified(part, changed, new, bool(kept))


def _where_changed(
    work: Work,
    start: Start,
    written: Path | ir.Model,
    wanted: Mapping[str, str],
    settings: Verify,
    given: tuple[Feed, ...],
    *,
    has_run: bool,
) -> Verification | None:
    """Compares the tensors in `wanted` where the steps changed the graph; None if that cannot tell. `has_run` says that
    the edited model was run before."""
    if start.generator is None:
        return None
    known = {value.name: name for value, name in work.original.items() if value.name}
    inputs = {name: old for name, old in work.inputs.items() if old}
    sides = Whole(start.source, start.interface), Whole(written, signature(work.model))
    return compared_where_changed(
        *sides, wanted, inputs, known, start.generator, settings, given, NAMES, has_run=has_run
    )


def _as_wholes(
    work: Work,
    original: Path | ir.Model,
    written: Path | ir.Model,
    kept: Mapping[str, str],
    before: Mapping[str, str],
    settings: Verify,
    given: tuple[Feed, ...],
) -> Verification:
    """Compares both models as wholes."""
    pair = _pair(work, original, written, kept, before)
    try:
        part = verify_models(*pair, settings, given=given, names=NAMES)
    except OnnxsmithError as error:
        if error.problem.id in _REFUSALS:
            _refuse_broken(original, settings)
        if error.problem.id == "verify/no-valid-input" and work.adapt_reference:
            _refuse_size(original, written, settings, error)
        raise
    for also in work.also:
        part = also(part, pair, settings, given)
    now = {old: name for name, old in kept.items()}  # the compared copy has the original's names
    said = () if work.adapt_candidate else (one for one in part.misdeclared if one.name in now)
    return replace(part, misdeclared=tuple(replace(one, name=now[one.name]) for one in said))


def _sizes_lost(original: Path | ir.Model, failing: Mapping[str, tuple[int, ...]], settings: Verify) -> tuple[str, ...]:
    """Returns a clause for each symbolic dimension at which the edited model fails where the original runs: a Reshape
    to fixed sizes takes some batches only. `failing` are the sizes at which the edited model fails."""
    before = failing_sizes(_without_repeated(original), settings) if failing else {}
    lost = {name: [size for size in sizes if size not in before.get(name, ())] for name, sizes in failing.items()}
    return tuple(
        f"the edited model fails at {name} = {', '.join(map(str, sizes))}, although the original runs there"
        for name, sizes in lost.items()
        if sizes
    )


def _run(
    model: ir.Model, written: Path | ir.Model, original: Path | ir.Model, settings: Verify
) -> tuple[tuple[Misdeclared, ...], dict[str, tuple[int, ...]] | None, str]:
    """Runs the edited `model`, as it is `written`. Returns the outputs whose declared shapes are wrong, the sizes at
    which it fails, and a clause. If the runtime lacks what the model needs, there are no sizes, and the clause says
    so."""
    lost: dict[str, tuple[int, ...]] = {}

    def note(session: Session, plan: Plan, values: Mapping[str, Any]) -> None:
        lost.update(failing(session, plan, values))

    source = without(cloned(model)) if repeated(model) else written
    interface = signature(model)
    known = interface, Generator.for_model(model).under(interface)
    try:
        wrong, clause = observed(source, settings, known=known, then=note)
        return wrong, lost, f"the edited model was {clause}" if clause else ""
    except OnnxsmithError as error:
        if error.problem.id in LACKS:
            return (), None, f"the edited model was not run as a whole, because {error.problem.what}"
        found = error
    _refuse_broken(original, settings)
    if settings.runtime is None and _fails_here(original, settings):
        with suppress(OnnxsmithError):  # the original runs on the reference evaluator only
            return observed(source, settings, by_standard=True)[0], {}, ""
    raise problem(
        "edit/does-not-run",
        "the edited model does not run",
        where=found.problem.where or "the edited model",
        why=_reason(found),
        fix=corrected(
            load(written),
            "correct the step that made this node or its operands (the reason names what is wrong); nothing was "
            "written; `onnxsmith inspect MODEL --nodes` lists the operands of the original",
        ),
    ) from found


def _fails_here(original: Path | ir.Model, settings: Verify) -> bool:
    """Whether the usual runtime refuses the original, or fails on every input."""
    try:
        observed(_without_repeated(original), settings)
    except OnnxsmithError as error:
        return error.problem.id in FAILS or isinstance(error, FailsError)
    return False


def _refuse_broken(original: Path | ir.Model, settings: Verify) -> None:
    """Raises if the original does not run. Then the steps are not at fault, and nothing can be compared."""
    found = _refusal(original, settings)
    if found is None:
        return
    raise problem(
        "edit/original-does-not-run",
        "the original does not run here, so the edited model cannot be compared with it",
        where=str(original) if isinstance(original, Path) else "the original",
        why=_reason(found),
        fix="add --no-verify, in Python `verify=False`: the edited model is written, and the report says that nothing "
        "was verified",
    ) from found


def _refuse_size(original: Path | ir.Model, written: Path | ir.Model, settings: Verify, error: OnnxsmithError) -> None:
    """Raises if the original runs, but not at the sizes that the edited model has in the place of symbols."""
    model = load(original)
    interface = signature(model)
    names = set(dims.symbols(interface)) - set(dims.symbols(signature(load(written))))
    plan = planned(model, interface, {}, settings.seed)

    def on(name: str) -> dict[str, int]:
        with runtimes.get(name).prepare(original, runtimes.patient(Options())) as session:
            given = plan.generator.feed(dict(plan.start or {}), seed=plan.seed).values
            return of_feed(interface, accepted(session, plan, given)[0])

    try:
        runs_at = runtime_choice.judged(settings.runtime, [original], on)[0]
    except OnnxsmithError:
        return
    found = [f"{name}={size}" for name, size in runs_at.items() if name in names]
    if found:
        raise problem(
            "edit/does-not-run",
            "the model does not run at this size",
            where=error.problem.where,
            why=error.problem.why,
            fix=f"write {' '.join(found)}, at which the original runs; nothing was written",
        ) from error


def _refusal(model: Path | ir.Model, settings: Verify) -> OnnxsmithError | None:
    """Returns why a model does not run on generated inputs; None if it runs, or if the runtime lacks a feature that it
    needs."""
    model = _without_repeated(model)
    try:
        run(model, runtime=settings.runtime, random=True, seed=settings.seed, sizes=_sizes(settings))
    except OnnxsmithError as error:
        return None if error.problem.id in LACKS else error
    return None


def _without_repeated(model: Path | ir.Model) -> Path | ir.Model:
    """Returns a copy without repeated names, which runtimes refuse; the model itself if it has none."""
    return without(cloned(load(model))) if repeated(load(model)) else model


def _reason(error: OnnxsmithError) -> str:
    return f"{error.problem.id}: {error.problem.what}. {error.problem.why}".strip()


def _sizes(settings: Verify) -> Mapping[str, Size]:
    return sizes(settings.sizes)


def _before_changes(work: Work, affected: set[ir.Value]) -> dict[str, str]:
    """Maps the names of unchanged tensors that changed nodes read to their names in the original."""
    found: dict[str, str] = {}
    for value in work.changed:
        node = value.producer()
        for operand in node.inputs if node is not None else ():
            if operand is None or operand in affected or operand.is_graph_input() or operand.is_initializer():
                continue
            if operand.graph is work.model.graph and operand.name and operand in work.original and len(found) < _MOST:
                found[operand.name] = work.original[operand]
    return found


def _pair(
    work: Work, original: Path | ir.Model, written: Path | ir.Model, kept: Mapping[str, str], before: Mapping[str, str]
) -> tuple[Path | ir.Model, Path | ir.Model]:
    """Returns the two models with the same interface: the original's names, and only the outputs to compare."""
    wanted = {**kept, **before}
    same = all(name == old for name, old in {**work.inputs, **work.outputs}.items()) and not before
    same = same and not repeated(work.model) and not repeated(load(original))
    same = same and len(wanted) == len(work.model.graph.outputs) == len(load(original).graph.outputs)
    if same and not work.adapt_reference and not work.adapt_candidate:
        return original, written
    reference, candidate = without(cloned(load(original))), without(cloned(load(written)))
    for adapt in work.adapt_reference:
        reference = adapt(reference)
    for adapt in reversed(work.adapt_candidate):  # the last step is undone first
        candidate = adapt(candidate)
    _keep_outputs(candidate, list(wanted))
    _keep_outputs(reference, list(wanted.values()))
    for model in (reference, candidate):
        if any(not value.is_graph_input() for value in model.graph.initializers.values()):
            model.ir_version = max(model.ir_version or 0, walk.FIRST_WITH_CONSTANTS)  # an input was fixed to a value
    inputs = [work.inputs.get(value.name or "") or value.name or "" for value in candidate.graph.inputs]
    old = [value.name or "" for value in reference.graph.inputs]
    # An input that is an output too becomes two values, and one name cannot be that of both.
    outputs = [f"{name} (output)" if name in {*old, *inputs} else name for name in wanted.values()]
    rename_ports(reference, old, outputs)
    rename_ports(candidate, inputs, outputs)
    return reference, candidate


def _keep_outputs(model: ir.Model, names: list[str]) -> None:
    """Makes these tensors the outputs, and removes what they do not need: a weight behind other tensors says nothing
    about the check, and a node may read an input that a step dropped."""
    graph = model.graph
    values = {value.name: value for node in graph for value in node.outputs}
    values |= {value.name: value for value in (*graph.initializers.values(), *graph.inputs, *graph.outputs)}
    graph.outputs.clear()
    graph.outputs.extend(values[name] for name in names)
    remove_unneeded(model)
    if any(values[name].type is None for name in names):
        known = {value.name: value for node in inferred(model)[0].graph for value in node.outputs}
        for name in names:
            if values[name].type is None and name in known:
                values[name].type, values[name].shape = known[name].type, known[name].shape


def repeated(model: ir.Model) -> dict[str, ir.Node]:
    """Returns the names that several nodes of a graph share, each with the last of these nodes."""
    found: dict[str, ir.Node] = {}
    for graph in walk.graphs(model):
        counts = Counter(node.name for node in graph if node.name)
        found |= {node.name: node for node in graph if node.name and counts[node.name] > 1}
    return found


def without(model: ir.Model) -> ir.Model:
    """Removes the shared names from the nodes of the model, and returns the model. Node names have no effect on a
    run."""
    names = repeated(model)
    for graph in walk.graphs(model) if names else ():
        for node in graph:
            if node.name in names:
                node.name = None
    return model


def name_doubts(model: ir.Model, where: str) -> tuple[Problem, ...]:
    """Returns a problem if nodes share names."""
    names = repeated(model)
    if not names:
        return ()
    name, node = next(iter(names.items()))
    result = next((value.name for value in node.outputs if value.name), "")
    file, selected = pasted(where), f"{{ gives = {json.dumps(result, ensure_ascii=False)} }}"
    return (
        Problem(
            "model/repeated-node-names",
            f"several nodes are called {', '.join(map(repr, list(names)[:3]))}",
            where=where,
            why="onnxruntime refuses a graph with two nodes of the same name; the comparison ran without these names",
            fix=f"`onnxsmith rename {file} {pasted(selected)} {pasted(f'{name}_2')} --kind node -o {file}`",
        ),
    )
