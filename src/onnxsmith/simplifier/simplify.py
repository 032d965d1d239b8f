"""`simplify`: fewer nodes, the same numbers, checked before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith import rooms
from onnxsmith.clock import Clock, stage
from onnxsmith.comparison.sessions import verify_models
from onnxsmith.comparison.verdict import ending, problems, verdict
from onnxsmith.feeds.generate import Feed
from onnxsmith.model import facts, shapes, walk
from onnxsmith.model.check import check
from onnxsmith.model.load import Source, load
from onnxsmith.model.save import staged
from onnxsmith.passes.base import Pass
from onnxsmith.problem import problem
from onnxsmith.report.base import Report
from onnxsmith.report.parts.simplification import Simplification
from onnxsmith.report.parts.timing import Timing
from onnxsmith.report.parts.verification import Verification, nothing_verified
from onnxsmith.report.parts.written import Written
from onnxsmith.report.parts.written import written as files_written
from onnxsmith.result import Result
from onnxsmith.rules.base import Rule
from onnxsmith.simplifier import branches, engine, folding, pipeline
from onnxsmith.simplifier.folding import Folding
from onnxsmith.simplifier.journal import Journal

_MOST_ROUNDS = 10


def simplify(
    source: Source,
    output: str | Path | None = None,
    *,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
    verify: bool = True,
    runtime: str | None = None,
    given: tuple[Feed, ...] = (),
    sizes: Mapping[str, int] | None = None,
    external_data: bool | None = None,
    seed: int = 0,
) -> Result:
    """Simplifies a model and checks it against the original on generated inputs.

    `source` is a path, a `ModelProto` or an `ir.Model`, none of which is changed. With `output` the result is written,
    if it agrees. `only` and `skip` take rule ids; `sizes` fixes symbolic dimensions for the check; `given` are inputs
    to check on as well. Without `verify` the report says that nothing was verified.

    Raises:
        OnnxsmithError: `model/…` for a model that cannot be read or is invalid, `simplify/unknown-rule`, `verify/…` and
            `runtime/…` when the check could not be made, `save/…` when the result could not be written.
    """
    where = str(source) if isinstance(source, str | Path) else "the given model"
    with Clock() as clock:
        with stage("load"):
            model = load(source)
            doubts = check(model, where=where)
        with stage("simplify"):
            simple, part = simplified(model, only=only, skip=skip)
        original = Path(source) if isinstance(source, str | Path) and Path(source).suffix == ".onnx" else model

        def verified(candidate: Path | ir.Model) -> Verification:
            return _verified(original, candidate, verify, runtime, given, sizes, seed)

        if output is None:
            verification, written = verified(simple), Written({}, "no output was asked for")
        else:
            verification, written = _write(simple, output, external_data, verify, verified)
    agrees = verification.equal or not verify
    report = Report(
        command="simplify",
        verdict=verdict(verification, asked=verify),
        headline=f"{where}: {part.nodes_before} nodes → {part.nodes_after}, {ending(verification)}",
        parts=(part, verification, written, Timing(dict(clock.seconds))),
        problems=(*doubts, *problems(verification, asked=verify)),
    )
    path = Path(next(iter(written.files))) if written.files else None
    return Result(report, simple if agrees else None, path)


def _write(
    simple: ir.Model,
    output: str | Path,
    external_data: bool | None,
    verify: bool,
    verified: Callable[[Path], Verification],
) -> tuple[Verification, Written]:
    """Writes aside, verifies that very file, and moves it into place if it agrees or nobody asked."""
    with staged(output) as target:
        with stage("save"):
            target.write(simple, external_data=external_data)
            check(load(target.path), where="the simplified model")
        verification = verified(target.path)
        if verify and not verification.equal:
            return verification, Written({}, "the simplified model differs from the original")
        with stage("save"):
            return verification, files_written(target.commit())


def simplified(
    model: ir.Model, *, only: Iterable[str] = (), skip: Iterable[str] = ()
) -> tuple[ir.Model, Simplification]:
    """A simplified copy of `model` (weights shared) and what was done; not verified."""
    chosen = _chosen(rooms.members("onnxsmith.rules", Rule), tuple(only), tuple(skip))
    copy, doubt = shapes.inferred(model)
    facts.spread_opsets(copy)
    journal = Journal()
    folding_ = Folding(journal)
    rounds = 0
    while rounds < _MOST_ROUNDS:
        rounds += 1
        if not _round(copy, chosen, folding_, journal):
            break
        shapes.infer(copy)
    folding_.finish()
    facts.forget(copy)
    _restore_shapes(copy, model)
    part = Simplification(
        nodes_before=walk.count_nodes(model),
        nodes_after=walk.count_nodes(copy),
        initializers_before=sum(1 for _ in walk.initializers(model)),
        initializers_after=sum(1 for _ in walk.initializers(copy)),
        fired=tuple(journal.fired),
        refused=journal.refused,
        rounds=rounds,
        notes=(doubt,) if doubt else (),
    )
    return copy, part


def _round(copy: ir.Model, chosen: _Chosen, folding_: Folding, journal: Journal) -> bool:
    """Everything once, in the order of `pipeline.py`; says whether anything changed."""
    changed = _passes(copy, pipeline.BEFORE, chosen, journal)
    if folding.RULE in chosen.steps:
        changed |= folding_.run(copy)
    if branches.RULE in chosen.steps:
        changed |= branches.flatten(copy, journal)
    changed |= engine.apply(copy, chosen.rules, journal)
    return _passes(copy, pipeline.AFTER, chosen, journal) or changed


def _passes(copy: ir.Model, passes: Iterable[tuple[str, Pass]], chosen: _Chosen, journal: Journal) -> bool:
    changed = False
    for id_, one in passes:
        if id_ and id_ not in chosen.steps:
            continue
        result = one.run(copy)
        changed |= result.changed
        for where in result.where:
            journal.fire(id_ or f"pass: {one.title}", where)
    return changed


def _restore_shapes(copy: ir.Model, model: ir.Model) -> None:
    """Ports keep the shapes that the file declares, which are its contract; other values have one where they had one.

    What inference found out would make the file larger, and any reader can find it out again.
    """
    ports = zip((*copy.graph.inputs, *copy.graph.outputs), (*model.graph.inputs, *model.graph.outputs), strict=True)
    for new, old in ports:
        new.shape = old.shape.copy() if old.shape is not None else None
        new.type = old.type
    declared = {v.name for node in walk.all_nodes(model) for v in node.outputs if v.shape is not None}
    for node in walk.all_nodes(copy):
        for value in node.outputs:
            if value.name not in declared and not value.is_graph_output():
                value.shape = value.type = None
    for value in walk.initializers(copy):
        if not value.is_graph_input() and not value.is_graph_output():
            value.shape = value.type = None  # the tensor says both; the writer would say them again


@dataclass(frozen=True)
class _Chosen:
    """The rules, and the ids of the other steps, that run."""

    rules: dict[str, Rule]
    steps: frozenset[str]


_STEPS = (folding.RULE, branches.RULE, *(id_ for id_, _ in pipeline.AFTER if id_))


def _chosen(rules: dict[str, Rule], only: tuple[str, ...], skip: tuple[str, ...]) -> _Chosen:
    known = [*rules, *_STEPS]
    unknown = [id_ for id_ in (*only, *skip) if id_ not in known]
    if unknown:
        raise problem(
            "simplify/unknown-rule",
            f"there is no rule {unknown[0]!r}",
            fix=f"one of: {', '.join(known)}",
        )
    wanted = {id_ for id_ in known if (not only or id_ in only) and id_ not in skip}
    return _Chosen({id_: rule for id_, rule in rules.items() if id_ in wanted}, frozenset(wanted.intersection(_STEPS)))


def _verified(
    original: Path | ir.Model,
    simple: Path | ir.Model,
    verify: bool,
    runtime: str | None,
    given: tuple[Feed, ...],
    sizes: Mapping[str, int] | None,
    seed: int,
) -> Verification:
    if not verify:
        return nothing_verified("the original", "the simplified model", "--no-verify was given")
    names = ("the original", "the simplified model")
    return verify_models(original, simple, runtime=runtime, given=given, known=sizes, seed=seed, names=names)
