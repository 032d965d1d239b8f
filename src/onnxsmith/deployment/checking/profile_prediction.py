"""Predicts from a profile which stage a target would reach with a model. No software is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage, TargetCheck
from onnxsmith.base.words import pasted, several
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.graph.reading import compiled_nodes
from onnxsmith.graph.structure import opset_range, provenance, walk
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes.base import Feeds
from onnxsmith.targets.judges.base import Answer, Judge, Refusal
from onnxsmith.targets.profiles.condition_result import Outlook
from onnxsmith.targets.profiles.node_acceptance import Foreseen, foresee, worst
from onnxsmith.targets.profiles.profile_format import Profile

STAGES = {Outlook.FITS: Stage.FITS, Outlook.REFUSED: Stage.REFUSED, Outlook.UNKNOWN: Stage.NOT_TRIED}
"""Maps outlooks to stages. An unknown outlook counts as not tried, never as taken."""
_MOST = 24
"""Limits the nodes of each outlook in the report. A choice: a longer list helps nobody."""


def by_rules(name: str, profile: Profile, subject: Subject) -> TargetCheck:
    """Predicts the check of a target by its profile: with symbolic sizes, then at fixed sizes if the symbolic sizes do
    not fit."""
    found = _check(name, profile, subject)
    if found.stage is Stage.FITS or subject.static is None:
        return replace(found, rewrite=_in_older_opset(name, profile, subject)) if found.whole else found
    static = _check(name, profile, subject.static)
    if static.stage is not Stage.FITS:
        return replace(found, rewrite=_in_older_opset(name, profile, subject)) if found.whole else found
    note = f"with dynamic shapes: {found.why}"
    return replace(static, shapes=subject.fixed_sizes, notes=(*static.notes, note))


def _in_older_opset(name: str, profile: Profile, subject: Subject) -> str:
    """Returns the rewrite that helps a model of a newer opset than the profile takes; "" if that does not help."""
    if profile.opset is None:
        return ""
    now = opset_conversion.of(subject.model)
    fits = next((one for one in range(now - 1, opset_range.OLDEST - 1, -1) if profile.opset.allows(one)), None)
    if profile.opset.allows(now) or fits is None:
        return ""
    try:
        model = opset_conversion.convert(subject.model, fits)
    except OnnxsmithError:
        return ""
    if any(one.outlook is Outlook.REFUSED for one in foresee(model, profile)):
        return ""
    if subject.source is None:
        return f"written in opset {fits}"
    file = pasted(subject.source)
    return f"written in opset {fits}: `onnxsmith check {file} --target {pasted(name)} --fix -o fixed.onnx`"


def outlook(profile: Profile, subject: Subject) -> Outlook:
    """Returns the profile's outlook for the model as a whole, or for its form at fixed sizes if this outlook is
    better."""
    said = worst(foreseen(profile, subject))
    if said is Outlook.FITS or subject.static is None:
        return said
    static = worst(foreseen(profile, subject.static))
    return static if static is Outlook.FITS else said


def foreseen(profile: Profile, subject: Subject) -> list[Foreseen]:
    """Returns the profile's predictions for each node, and for the model as a whole."""
    return [_compiled(one, profile) for one in foresee(subject.model, profile, subject.shaped)]


def _compiled(found: Foreseen, profile: Profile) -> Foreseen:
    """Returns the prediction; for a node with compiled code, it depends on the provider that compiled the node."""
    if found.node is None or not compiled_nodes.is_compiled(found.node):
        return found
    if compiled_nodes.is_for(found.node, profile.id):
        why = "it was compiled for this target, whose provider, SDK and device decide whether the code loads"
        return replace(found, outlook=Outlook.UNKNOWN, reason=why)
    return replace(found, outlook=Outlook.REFUSED, reason="it was compiled for another provider")


def _check(name: str, profile: Profile, subject: Subject) -> TargetCheck:
    entries = foreseen(profile, subject)
    whole = [one for one in entries if one.node is None and one.outlook is not Outlook.FITS]
    nodes = [one for one in entries if one.node is not None]
    counts = Counter(STAGES[one.outlook].value for one in nodes)
    listed = [one for kind in (Outlook.REFUSED, Outlook.UNKNOWN) for one in nodes if one.outlook is kind]
    shown = [one for kind in (Outlook.REFUSED, Outlook.UNKNOWN) for one in listed if one.outlook is kind][:_MOST]
    return TargetCheck(
        target=name,
        title=profile.title,
        version=profile.version,
        judge=False,
        stage=STAGES[worst(entries)],
        why=_why(whole, listed),
        shapes="dynamic" if subject.dynamic else "fixed",
        counts=dict(counts),
        nodes=tuple(map(_node, shown)),
        notes=(_table(profile), *(_undecided(profile) if counts[Stage.NOT_TRIED.value] else ()), *profile.notes),
        whole=any(one.outlook is Outlook.REFUSED for one in whole),
        complete=len(shown) == len(listed),
    )


def _table(profile: Profile) -> str:
    """Says which table was asked: its version, when it was read, and from where."""
    table = f"the table ({profile.version})" if profile.version else "the table"
    return f"{table} was read on {profile.date} from {profile.source}" if profile.date else f"{table}: {profile.source}"


def _undecided(profile: Profile) -> Iterator[str]:
    """Yields what the table leaves open, and what decides it."""
    if profile.unsaid:
        yield f"the table does not cover these points: {' '.join(profile.unsaid)}"
    yield "undecided nodes may be accepted or refused: try the model with the target's own software"


def _why(whole: list[Foreseen], listed: list[Foreseen]) -> str:
    if whole:
        return "; ".join(one.reason for one in whole)
    if not listed:
        return ""
    refused = [one for one in listed if one.outlook is Outlook.REFUSED]
    unknown = len(listed) - len(refused)
    first = (refused or listed)[0]
    told = [f"{several(len(refused), 'node')} refused"] * bool(refused)
    told += [f"the table does not decide {several(unknown, 'node')}"] * bool(unknown)
    label = "" if first.node is None else f"{walk.node_label(first.node)}: "
    return f"{'; '.join(told)}; first node: {label}{first.reason}"


def _node(one: Foreseen) -> NodeCheck:
    assert one.node is not None
    return NodeCheck(
        walk.node_label(one.node),
        walk.op_name(one.node),
        STAGES[one.outlook],
        one.reason,
        str(provenance.of(one.node)),
        "by the table",
    )


class TableJudge(Judge):
    """Asks a profile as if it were software. The judge takes a model in which the profile refuses nothing."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._last: tuple[ir.Model, list[Foreseen]] | None = None

    @classmethod
    @contextmanager
    def judging(cls, profile: Profile) -> Iterator[Judge]:
        """Yields the judge of a profile."""
        yield cls(profile)

    def ask(self, model: ir.Model, feeds: Feeds | None = None) -> Answer:
        _call_limits.left(0)  # raises the problem of a time limit that has passed
        refused = [one.reason for one in self._refused(model)]
        return Answer(Stage.NOT_TRIED, Refusal("; ".join(dict.fromkeys(refused)))) if refused else Answer(Stage.FITS)

    def refused(self, model: ir.Model) -> set[str]:
        return {
            walk.op_name(one.node) if one.node is not None else f"the file: {one.reason}"
            for one in self._refused(model)
        }

    def _refused(self, model: ir.Model) -> list[Foreseen]:
        """Returns what the profile refuses of the model. Keeps the answer: a search asks several times in a row."""
        if self._last is None or self._last[0] is not model:
            found = [one for one in foresee(model, self._profile) if one.outlook is Outlook.REFUSED]
            self._last = model, found
        return self._last[1]
