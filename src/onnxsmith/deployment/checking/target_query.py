"""Asks one target about a model: with dynamic shapes, then at fixed sizes, then about the nodes that stop the
target.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck
from onnxsmith.base.report.parts.verification import OutputCheck, Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, pasted_words, several
from onnxsmith.comparison.outputs.compare import compare
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.deployment.checking.fix_search import UNKNOWN, fixed, in_words
from onnxsmith.deployment.checking.profile_prediction import STAGES, outlook
from onnxsmith.deployment.checking.random_cut import random_cut
from onnxsmith.deployment.checking.refused_nodes import MOST, Narrowed, narrow
from onnxsmith.graph.files.specification_check import operands_clash
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Runtime
from onnxsmith.targets.judges.base import Answer, Judge, Refusal, Target
from onnxsmith.targets.profiles.profile_reader import built_in, named
from onnxsmith.verification import random_draws

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
    """Returns the check of a model. The target takes the model as it is, or after a change that `judge` makes."""
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
        why = (
            "only loading was tested, because no input was found that an installed runtime accepts: give an input "
            "with --input"
        )
        return replace(blank, stage=answer.reached, why=why, shapes=shapes, counts={answer.reached.value: count})
    if not target.runs or target.runtime is None:
        note = f"only {answer.reached.value}: {target.reaches}"
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
        differs=found.differs,
        help=found.help,
        untried=found.untried,
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
            if _call_limits.is_over():
                raise
            limits.append(error)
            return None

    try:
        found = narrow(subject.shaped, ask, refusal, most=most)
    except OnnxsmithError:
        if not _call_limits.is_over():
            raise
        late = "not searched, because the time limit had passed: refused nodes, and rewrites that help"
        shapes = "dynamic" if subject.dynamic else "fixed"
        return replace(blank, stage=Stage.REFUSED, why=refusal.why, shapes=shapes, notes=(late,), complete=False)
    count = walk.count_nodes(subject.model)
    nodes = tuple(
        NodeCheck(one.label, one.op, Stage.REFUSED, one.why, one.place, _evidence(one.evidence, one.related))
        for one in found.culprits
    )
    notes = [f"{several(found.asked, 'part')} of the model tried on the target"] if found.asked else []
    if limits:
        notes.append(
            f"{several(len(limits), 'part')} could not be tried on the target, first because: {limits[0].problem.what}"
        )
    # a target may take another form of a model that nothing computes: that would be no help
    search = search and (subject.feeds is not None or not operands_clash(subject.model))
    helps = None
    try:
        helps = fixed(judge, subject, {one.op for one in found.culprits} or {UNKNOWN}) if search else None
    except OnnxsmithError:
        if not _call_limits.is_over():
            raise
        notes.append("some rewrites that may help were not tried, because the time limit had passed")
    return replace(
        blank,
        stage=Stage.REFUSED,
        rewrite=in_words(helps, subject) if helps is not None else "",
        why=(found.whole or refusal).why,
        shapes="dynamic" if subject.dynamic else "fixed",
        counts=_counts(found, count, runs=runs, certain=not limits),
        nodes=nodes,
        notes=tuple(notes),
        whole=found.whole is not None,
        complete=found.complete,
    )


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


_REFERENCES = ("onnxruntime:disable", "openvino", "tract", "reference")
"""Lists the runtimes to compare with, in this order. onnxruntime without optimisations runs each node as the file has
it. OpenVINO and tract are independent of onnxruntime. The reference evaluator is slow."""

_ALONE = 'install another runtime that supports the model\'s operators: `pip install "onnxsmith[cpu,openvino]"`'
"""Advises on a model that one runtime alone runs here."""
_MOST_NAMED = 3
"""Limits the nodes that a sentence names. A choice."""


@dataclass(frozen=True)
class Agreement:
    """Holds the result of a comparison. `why` says what differs, or why nothing can be said; `nodes` are the first
    operations that differ. `help` and `untried` are those of `TargetCheck`."""

    stage: Stage
    why: str = ""
    notes: tuple[str, ...] = ()
    nodes: tuple[NodeCheck, ...] = ()
    differs: bool = False
    help: str = ""
    untried: tuple[str, ...] = ()


def agreement(subject: Subject, runtime: str) -> Agreement:
    """Compares the model on `runtime` with another runtime, on the given inputs or on generated inputs.

    If one reference disagrees with the target and another agrees, the target agrees, and a note names the reference
    that is alone. If two references agree with each other and not with the target, the target is named. A model that
    draws random numbers does not even agree with itself on one runtime, so only the nodes that draw no numbers are
    compared.
    """
    found = _agreement(subject, runtime)
    drawn = random_draws.nodes(subject.model)
    if not drawn or found.stage is not Stage.AGREED:
        return found
    named = first_few([f"{node.op_type} {walk.node_label(node)}" for node in drawn], _MOST_NAMED)
    why = f"the model draws random numbers ({named}), so two runs differ and the outputs cannot be compared"
    note = "with fixed numbers in place of the random numbers, the outputs agree"
    return Agreement(
        Stage.RAN, why, (note, *found.notes), help=_without_draws(random_cut(subject.model, drawn), runtime)
    )


def _without_draws(cut: Sequence[str], runtime: str) -> str:
    """Returns how a model is checked without its random numbers; `cut` are the tensors that become its inputs."""
    if not cut:
        return "make the random numbers inputs of the module, and export it again"
    words = pasted_words(word for name in cut for word in ("--from", name))
    cut_out = f"onnxsmith extract MODEL {words} -o without_draws.onnx"
    again = f"onnxsmith check without_draws.onnx --target {runtime}"
    return f"make the random numbers inputs: `{cut_out}`; then check the rest of the model: `{again}`"


def _agreement(subject: Subject, runtime: str) -> Agreement:
    unlike: dict[str, Agreement] = {}
    for name in _others(runtime):
        if _call_limits.is_over():
            late = "the outputs were not compared, because the time limit had passed"
            return next(iter(unlike.values()), None) or Agreement(Stage.RAN, late)
        one = _compared(subject, runtime, name)
        if one is None:
            continue
        if one.stage is Stage.AGREED:
            alone = [
                f"only {other} differs: {runtime} and {name} agree; {found.why}"
                if found.differs
                else f"{other}: {found.why}"
                for other, found in unlike.items()
            ]
            return replace(one, notes=(*one.notes, *alone))
        unlike[name] = one
    if not unlike and _call_limits.is_over():
        return Agreement(Stage.RAN, "the outputs were not compared, because the time limit had passed")
    if not unlike:
        return Agreement(
            Stage.RAN, "no other installed runtime runs the model, so the outputs were not compared", help=_ALONE
        )
    first, *others = unlike
    differ = [name for name in others if unlike[name].differs]
    if unlike[first].differs and differ and not _call_limits.is_over():
        between = _compared(subject, first, differ[0])
        if between is not None and between.stage is Stage.AGREED:
            why = f"only {runtime} differs: {first} and {differ[0]} agree with each other; {unlike[first].why}"
            return replace(unlike[first], why=why)
    return unlike[first]


def _others(runtime: str) -> list[str]:
    members = rooms.members("onnxsmith.runtimes", Runtime)
    names = [(name, name.partition(":")[0]) for name in _REFERENCES]
    return [name for name, bare in names if bare != runtime and members[bare].missing() is None]


def _compared(subject: Subject, runtime: str, reference: str) -> Agreement | None:
    """Compares the model with one reference; returns None if the reference does not run the model."""
    sides = (f"{subject.file}@{reference}", f"{subject.file}@{runtime}")
    settings: dict[str, Any] = {
        "inputs": [dict(feed.values) for feed in subject.given],
        "sizes": dict(subject.sizes),
        "seed": subject.seed,
        "free": subject.free,
    }
    try:
        report = compare(*sides, **settings).report
    except OnnxsmithError:
        return None
    if report.verdict is Verdict.FAILED:
        return None
    part = report.part(Verification)
    said = f"compared with {reference} on {len(part.runs)} inputs"
    weak = {one.name: one.weak for one in part.outputs if one.weak}
    precision = runtimes.get(runtime).precision
    notes = (
        said,
        *((precision,) if precision else ()),
        *(f"output {name}: {why}" for name, why in weak.items()),
    )
    if report.verdict is Verdict.DONE and part.outputs and len(weak) == len(part.outputs):
        return Agreement(
            Stage.RAN,
            f"the outputs agree with {reference}, but this proves nothing: the notes on the outputs say why",
            notes,
        )
    if report.verdict is Verdict.DONE:
        return Agreement(Stage.AGREED, "", notes, untried=part.untried)
    if report.verdict is Verdict.CANNOT_TELL:
        return Agreement(Stage.RAN, f"the comparison shows too little: {'; '.join(part.unsure)}", notes)
    unequal = sorted((one for one in part.outputs if not one.equal), key=lambda one: -one.worst_rel)
    worst = first_few(list(map(_off, unequal)), _MOST_NAMED) or report.headline
    why = f"the outputs differ from {reference}: {worst}"
    return Agreement(Stage.RAN, why, notes, _blamed(sides, settings), differs=True)


def _off(one: OutputCheck) -> str:
    """Says how far an output is off, and on which input."""
    where = f", on {one.where}" if one.where else ""
    known = 0 < one.worst_abs < math.inf
    off = f"off by {one.worst_abs:.3g} at a scale of {one.scale:.3g}" if known else ""
    return f"output {one.name}: {', '.join(text for text in (one.reason, off) if text) or 'it differs'}{where}"


def _blamed(sides: tuple[str, str], settings: dict[str, Any]) -> tuple[NodeCheck, ...]:
    """Returns the first operations whose outputs differ on equal inputs."""
    try:
        report = compare(*sides, per_layer=True, **settings).report
        layers = report.part(Layers)
    except (OnnxsmithError, LookupError):
        return ()
    found = []
    for name in layers.culprits:
        one = layers.layer(name)
        found.append(
            NodeCheck(one.name, one.op, Stage.RAN, one.reason, one.place(), f"compared by layer, {layers.input}")
        )
    return tuple(found)
