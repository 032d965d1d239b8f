"""Measures a model, and makes the entry of a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.benching.baseline import here
from onnxsmith.deployment.bundles.golden import Golden, recorded
from onnxsmith.gate.baselines import target_stages, times
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import Acceptance, Entry, StoredCase
from onnxsmith.gate.baselines.facts import Facts, facts, versions
from onnxsmith.gate.baselines.settings import Settings
from onnxsmith.gate.baselines.stored_values import restored, stored
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.generate import Feed


def entry_of(
    file: Path, content: Content, settings: Settings, before: Entry | None = None, *, history: Sequence[Acceptance] = ()
) -> tuple[Entry, tuple[str, ...]]:
    """Measures a model, and returns its entry with notes. Values go to `content`. The inputs are those of the settings;
    without any, those that were recorded `before`, if the model still takes them; without these, generated ones.

    Raises:
        OnnxsmithError: the errors of loading, running and measuring the model.
    """
    with stage("load"):
        now = facts(file)
    runtime = settings.runtime or (before.runtime if before is not None else runtimes.default())
    with stage("record"):
        found = _golden(file, now, runtime, settings, before, content)
    not_stored: list[str] = []
    cases = [held for case in found.cases if (held := stored(case, content, not_stored)) is not None]
    values = first_inputs(cases, content)
    targets = settings.targets or (list(before.targets) if before is not None else ())
    with stage("targets"):
        stages = target_stages.stages(file, targets, values)
    timed = None
    if settings.times:
        with stage("measure"):
            timed = times.measured(file, values, runtime, settings.seconds)
    notes = [*found.notes, *(f"not stored: {name}" for name in not_stored)]
    if timed is not None and timed.low is None:
        notes.append(f"too few rounds for an interval of the time: give more than --seconds {settings.seconds:g}")
    made = Entry(
        interface=now.ports,
        nodes=now.nodes,
        bytes=now.bytes,
        digests=now.stored_digests,
        runtime=runtime,
        versions=versions(runtime),
        machine=here(),
        cases=cases,
        targets=stages,
        times=timed,
        not_stored=not_stored,
        history=list(history),
    )
    return made, tuple(notes)


def first_inputs(cases: Sequence[StoredCase], content: Content) -> dict[str, Any]:
    """Returns the inputs of the first case: on these a model is measured, and shown to targets."""
    return {name: restored(value, content) for name, value in cases[0].inputs.items()} if cases else {}


def _golden(file: Path, now: Facts, runtime: str, settings: Settings, before: Entry | None, content: Content) -> Golden:
    def made(given: Sequence[Feed]) -> Golden:
        return recorded(now.model, file, now.interface, given, {}, runtime=runtime, seed=settings.seed)

    given = user_inputs.inputs(settings.inputs, now.interface)
    if given or before is None:
        return made(given)
    known = {port.name for port in now.interface.inputs}
    again = [Feed(case.label, case.sizes, _restored(case.inputs, content)) for case in before.cases]
    try:
        return made([feed for feed in again if feed.values.keys() <= known])
    except OnnxsmithError:  # the model takes other inputs now
        return made(())


def _restored(values: Mapping[str, Mapping[str, Any]], content: Content) -> dict[str, Any]:
    return {name: restored(value, content) for name, value in values.items()}
