"""Asks one target about a model: with dynamic shapes, then at fixed sizes, then about the nodes that stop the
target."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck
from onnxsmith.deployment.checking.agreement import agreement
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.fix_search import UNKNOWN, Fixed, fixed
from onnxsmith.deployment.checking.profile_prediction import STAGES, outlook
from onnxsmith.deployment.checking.refused_nodes import MOST, Narrowed, narrow
from onnxsmith.graph.structure import walk
from onnxsmith.targets.judges.base import Answer, Judge, Refusal, Target
from onnxsmith.targets.profiles.profile_reader import built_in, named

_FEW = 4
"""Limits the nodes that are searched for if the target takes the model at fixed sizes. A choice: the search takes
longer than everything else."""


def asked(name: str, target: Target, subject: Subject, *, search: bool = True) -> TargetCheck:
    """Returns the stage that the target reaches with the model. With `search`, also searches for rewrites that help.

    Raises:
        OnnxsmithError: `runtime/timeout`, `runtime/memory` if the target exceeds its limits with the whole model.
    """
    expected = STAGES[outlook(named(name), subject)].value if name in built_in() else ""
    blank = TargetCheck(name, target.title, target.version(), judge=True, stage=Stage.NOT_TRIED, expected=expected)
    with target.judging() as judge:
        answer = judge.ask(subject.model, subject.feeds)
        if answer.refusal is None:
            return _taken(blank, judge, target, subject, answer)
        static = subject.static
        if static is None:
            return _refused(blank, judge, subject, answer.refusal, search=search)
        second = judge.ask(static.model, static.feeds)
        if second.refusal is not None:
            found = _refused(blank, judge, static, second.refusal, search=search)
            return replace(found, shapes=f"dynamic, then {subject.fixed_sizes}")  # fixes are tried at fixed sizes
        own = judge.unchanged(subject.file, subject.feeds)
        if own is not None and own.refusal is None:  # the target gets the sizes in a call, so the file stays as it is
            return _sized(blank, judge, target, subject, replace(second, symbols=answer.refusal))
        dynamic = _refused(blank, judge, subject, answer.refusal, search=search)
        return replace(
            _with_nodes(_accepted(blank, target, static, second), dynamic),
            shapes=subject.fixed_sizes,
            changed="with its sizes fixed",
            as_it_is=dynamic.why,
        )


def _taken(blank: TargetCheck, judge: Judge, target: Target, subject: Subject, answer: Answer) -> TargetCheck:
    """Returns the check of a model that the target takes as it is, or after a change that `judge` makes."""
    own = judge.unchanged(subject.file, subject.feeds)
    # Nothing was changed, or the change does not help: the file and the changed form both need given sizes.
    if own is None or (own.refusal is None and answer.symbols is not None and own.symbols is not None):
        return (
            _sized(blank, judge, target, subject, answer)
            if answer.symbols
            else _accepted(blank, target, subject, answer)
        )
    if own.refusal is None:
        found = _accepted(blank, target, subject, answer)
        if own.symbols is None:
            return found
        # Only the changed form takes dynamic shapes.
        return replace(
            found,
            shapes=subject.fixed_sizes,
            symbols=own.symbols.why,
            rewrite=f"{judge.prepares(subject.model)} (for dynamic shapes)",
        )
    found = (
        _sized(blank, judge, target, subject, answer) if answer.symbols else _accepted(blank, target, subject, answer)
    )
    return replace(found, changed=judge.prepares(subject.model), as_it_is=own.refusal.why)


def _sized(blank: TargetCheck, judge: Judge, target: Target, subject: Subject, answer: Answer) -> TargetCheck:
    """Returns the check of a model that the target takes only at given sizes, with the nodes that stop it at other
    sizes."""
    assert answer.symbols is not None
    dynamic = _refused(blank, judge, subject, answer.symbols, most=_FEW, search=False)
    found = _accepted(blank, target, subject, answer)
    return replace(_with_nodes(found, dynamic), shapes=subject.fixed_sizes, symbols=dynamic.why)


def _with_nodes(found: TargetCheck, dynamic: TargetCheck) -> TargetCheck:
    """Returns the check with the nodes that are refused with dynamic shapes, and rewrites that help with these
    nodes."""
    nodes = tuple(replace(one, why=f"with dynamic shapes: {one.why}") for one in dynamic.nodes)
    return replace(found, nodes=(*found.nodes, *nodes), complete=dynamic.complete, rewrite=dynamic.rewrite)


def _accepted(blank: TargetCheck, target: Target, subject: Subject, answer: Answer) -> TargetCheck:
    count = walk.count_nodes(subject.model)
    shapes = "dynamic" if subject.dynamic else "fixed"
    if answer.reached is not Stage.RAN and target.runs:
        why = "no input was found that another runtime accepts: give one with --input"
        return replace(blank, stage=answer.reached, why=why, shapes=shapes, counts={answer.reached.value: count})
    if not target.runs or target.runtime is None:
        note = f"only {answer.reached.value}: running needs its device"
        counts = {answer.reached.value: count}
        return replace(blank, stage=answer.reached, shapes=shapes, counts=counts, notes=(*answer.notes, note))
    found = agreement(subject, target.runtime)
    counts = Counter({found.stage.value: count})
    return replace(
        blank,
        stage=found.stage,
        why=found.why,
        shapes=shapes,
        counts=dict(counts),
        nodes=found.nodes,
        notes=(*answer.notes, *found.notes),
    )


def _refused(
    blank: TargetCheck, judge: Judge, subject: Subject, refusal: Refusal, *, most: int = MOST, search: bool
) -> TargetCheck:
    """Returns the check of a refused model, with the nodes to blame."""
    runs = refusal.stage is Stage.BUILT
    limits: list[OnnxsmithError] = []

    def ask(part: ir.Model) -> Refusal | None:
        feeds = subject.part_feeds(part, only_real=runs) if runs or subject.dynamic else None
        try:
            said = judge.ask(part, feeds)
            return said.refusal or (said.symbols if subject.dynamic else None)
        except OnnxsmithError as error:  # a part that exceeds the limits says nothing about its nodes
            limits.append(error)
            return None

    found = narrow(subject.shaped, ask, refusal, most=most)
    count = walk.count_nodes(subject.model)
    nodes = tuple(
        NodeCheck(one.label, one.op, Stage.REFUSED, one.why, one.place, _evidence(one.evidence, one.related))
        for one in found.culprits
    )
    notes = [f"asked about {found.asked} parts of the model"] if found.asked else []
    if limits:
        notes.append(f"{len(limits)} parts could not be asked about, the first: {limits[0].problem.what}")
    helps = fixed(judge, subject, {one.op for one in found.culprits} or {UNKNOWN}) if search else None
    return replace(
        blank,
        stage=Stage.REFUSED,
        rewrite=_words(helps, subject) if helps is not None else "",
        why=(found.whole or refusal).why,
        shapes="dynamic" if subject.dynamic else "fixed",
        counts=_counts(found, count, runs=runs, certain=not limits),
        nodes=nodes,
        notes=tuple(notes),
        whole=found.whole is not None,
        complete=found.complete,
    )


def _words(helps: Fixed, subject: Subject) -> str:
    sizes = " (at fixed sizes)" if helps.symbols else " (with dynamic shapes)" if subject.dynamic else ""
    return "; ".join(helps.steps) + sizes


def _evidence(said: str, related: tuple[str, ...]) -> str:
    return said + (f"; the graph could not be cut behind {', '.join(related[:3])}" if related else "")


def _counts(found: Narrowed, count: int, *, runs: bool, certain: bool) -> dict[str, int]:
    """Counts the nodes by stage. Nodes that are not refused count as not tried if some part of the model could not be
    asked about."""
    refused = len(found.culprits)
    if found.whole is not None or not refused:
        return {Stage.REFUSED.value if found.whole is not None else Stage.NOT_TRIED.value: count}
    rest = Stage.NOT_TRIED if not found.rest or not certain else Stage.RAN if runs else Stage.BUILT
    counts = {Stage.REFUSED.value: refused}
    if count > refused:
        counts[rest.value] = count - refused
    return counts
