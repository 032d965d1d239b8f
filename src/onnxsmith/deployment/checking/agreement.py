"""Compares a target's outputs with the outputs of another runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.parts.target_checks import NodeCheck, Stage
from onnxsmith.base.report.parts.verification import OutputCheck, Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few
from onnxsmith.comparison.outputs.compare import compare
from onnxsmith.deployment.checking.checked_model import Subject
from onnxsmith.graph.structure import walk
from onnxsmith.runtimes.base import Runtime
from onnxsmith.verification import random_draws

_REFERENCES = ("onnxruntime:disable", "openvino", "tract", "reference")
"""Lists the runtimes to compare with, in this order. onnxruntime without optimisations runs each node as the file has
it. OpenVINO and tract are independent of onnxruntime. The reference evaluator is slow."""

_MOST_NAMED = 3
"""Limits the nodes that a sentence names. A choice."""


@dataclass(frozen=True)
class Agreement:
    """Holds the result of a comparison. `why` says what differs, or why nothing can be said; `nodes` are the first
    operations that differ."""

    stage: Stage
    why: str = ""
    notes: tuple[str, ...] = ()
    nodes: tuple[NodeCheck, ...] = ()


def agreement(subject: Subject, runtime: str) -> Agreement:
    """Compares the model on `runtime` with another runtime, on the given inputs or on generated inputs.

    If one reference disagrees with the target and another agrees, the target agrees, and a note says so. A model that
    draws random numbers does not even agree with itself on one runtime, so only the nodes that draw no numbers are
    compared.
    """
    found = _agreement(subject, runtime)
    drawn = random_draws.nodes(subject.model)
    if not drawn or found.stage is not Stage.AGREED:
        return found
    named = first_few([f"{node.op_type} {walk.node_label(node)}" for node in drawn], _MOST_NAMED)
    why = f"it draws random numbers ({named}), so that two runs differ and its outputs cannot be compared"
    note = "with fixed numbers in place of the random ones it agrees"
    return Agreement(Stage.RAN, why, (note, *found.notes))


def _agreement(subject: Subject, runtime: str) -> Agreement:
    found: Agreement | None = None
    for name in _others(runtime):
        one = _compared(subject, runtime, name)
        if one is None:
            continue
        if one.stage is Stage.AGREED:
            if found is None:
                return one
            return Agreement(Stage.AGREED, "", (*one.notes, f"another runtime disagrees: {found.why}"))
        found = found or one
    return found or Agreement(Stage.RAN, "no other runtime here runs the model, so that its numbers were not compared")


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
    notes = (said, *part.untried, *(f"output {name}: {why}" for name, why in weak.items()))
    if report.verdict is Verdict.DONE and part.outputs and len(weak) == len(part.outputs):
        return Agreement(Stage.RAN, f"it agrees with {reference}, which proves nothing: see the outputs", notes)
    if report.verdict is Verdict.DONE:
        return Agreement(Stage.AGREED, "", notes)
    if report.verdict is Verdict.CANNOT_TELL:
        return Agreement(Stage.RAN, f"the comparison shows too little: {'; '.join(part.unsure)}", notes)
    worst = next((_worst(one) for one in part.outputs if not one.equal), report.headline)
    return Agreement(Stage.RAN, f"its numbers differ from {reference}: {worst}", notes, _blamed(sides, settings))


def _worst(one: OutputCheck) -> str:
    where = f", on {one.where}" if one.where else ""
    return f"output {one.name}: {one.reason or f'off by {one.worst_rel:.2g} of its scale'}{where}"


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
