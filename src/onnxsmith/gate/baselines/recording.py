"""Measures a model, and makes the entry of a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.deployment.benching.baseline import here
from onnxsmith.deployment.bundles.dimension_ranges import Range, ranges
from onnxsmith.deployment.bundles.golden import Golden, recorded
from onnxsmith.gate.baselines import target_stages, times
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import Acceptance, Entry, StoredCase
from onnxsmith.gate.baselines.facts import Facts, facts, versions
from onnxsmith.gate.baselines.outline import outline, to_bytes
from onnxsmith.gate.baselines.settings import Settings, size_texts
from onnxsmith.gate.baselines.stored_values import restored, stored
from onnxsmith.graph.structure import dim_ranges
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification import random_draws
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.size_limits import names, refuse_unknown


def entry_of(
    file: Path, content: Content, settings: Settings, before: Entry | None = None, *, history: Sequence[Acceptance] = ()
) -> tuple[Entry, tuple[str, ...]]:
    """Measures a model, and returns its entry with notes. Values go to `content`. The inputs are those of the settings;
    without any, those that were recorded `before`, if the model still takes them; without these, generated ones.

    Raises:
        OnnxsmithError: the errors of loading, running and measuring the model.
    """
    runtime = settings.runtime or (before.runtime if before is not None else runtimes.default())
    runtimes.get(runtime)
    with stage("load"):
        now = facts(file)
    sizes = _sizes(settings, before, now)
    tolerance = settings.tolerance if settings.tolerance is not None or before is None else before.tolerance
    with stage("record"), _of_baselines(now.model, file):
        declared = ranges(sizes, now.interface.symbols(), now.interface, str(file))

        def make(given: Sequence[Feed], asked: Mapping[str, Range]) -> Golden:
            return recorded(
                now.model, file, now.interface, given, asked, runtime=runtime, seed=settings.seed, tolerance=tolerance
            )

        found = _golden(make, now, settings, before, content, declared)
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
        outline=content.keep("", to_bytes(outline(now.model))),
        sizes=sizes,
        tolerance=tolerance,
        not_stored=not_stored,
        history=list(history),
    )
    return made, tuple(notes)


def first_inputs(cases: Sequence[StoredCase], content: Content) -> dict[str, Any]:
    """Returns the inputs of the first case: on these a model is measured, and shown to targets."""
    return {name: restored(value, content) for name, value in cases[0].inputs.items()} if cases else {}


def _sizes(settings: Settings, before: Entry | None, now: Facts) -> dict[str, str]:
    """Returns the sizes that are asked for as texts; without any, those that were asked for before.

    Raises:
        OnnxsmithError: `input/unknown-dim`, and the errors of reading the sizes.
    """
    asked = dim_ranges.read(settings.sizes)
    refuse_unknown(asked, now.interface)
    if not asked and before is not None:
        return {name: size for name, size in before.sizes.items() if name in names(now.interface)}
    return size_texts(asked)


def _golden(
    make: Callable[[Sequence[Feed], Mapping[str, Range]], Golden],
    now: Facts,
    settings: Settings,
    before: Entry | None,
    content: Content,
    declared: Mapping[str, Range],
) -> Golden:
    given = user_inputs.inputs(settings.inputs, now.interface)
    if given or before is None or settings.sizes:
        return make(given, declared)
    known = {port.name for port in now.interface.inputs}
    recorded_before = [Feed(case.label, case.sizes, _restored(case.inputs, content)) for case in before.cases]
    again = [feed for feed in recorded_before if feed.values.keys() <= known]
    try:
        found = make(again, {})
        return replace(found, cases=found.cases[: len(again)]) if again else found
    except OnnxsmithError:  # the model takes other inputs now
        return make((), declared)


@contextmanager
def _of_baselines(model: ir.Model, file: Path) -> Iterator[None]:
    """Says the problems of recorded data in the words of baselines: other verbs hand them over in a bundle."""
    try:
        yield
    except OnnxsmithError as error:
        found = error.problem
        if found.id == "bundle/random" and not random_draws.nodes(model):
            name = pasted(file)
            raise problem(
                "gate/random",
                "every output differs from run to run, so a later run cannot be compared",
                where=found.where,
                why="no node draws random numbers, but two runs on the same input returned different outputs, as "
                "if the runtime read uninitialised memory",
                fix=f"find the node: `onnxsmith compare {name}@reference {name} --per-layer`; or record the outputs "
                "of another runtime: --runtime openvino",
            ) from error
        if found.id == "bundle/random":
            raise problem(
                "gate/random",
                "every output is drawn at random, so a later run cannot be compared",
                where=found.where,
                why="two runs on the same input returned different outputs. A seed does not help, because each run "
                "of a session draws the next numbers",
                fix="export the module in evaluation mode, so that no node draws numbers (`module.eval()`); or make "
                "the random tensor an input of the model, and record it: --input noise=noise.npy",
            ) from error
        what, where, why, fix = map(_in_words, (found.what, found.where, found.why, found.fix))
        if found.id == "bundle/too-large":
            raise problem("gate/too-large", what, where=where, why=why, fix=fix) from error
        if found.id == "bundle/dim-range":
            raise problem("gate/dim", what, where=where, why=why, fix=fix) from error
        raise


_IN_WORDS = {
    "golden data": "recorded data",
    "makes the bundle too large to hand over": "makes the baseline too large to keep beside the code",
    "the generated runners refuse sizes outside of the declared range": "inputs have the sizes of --dim",
}
"""Maps words of a bundle to those of a baseline."""


def _in_words(text: str) -> str:
    for theirs, ours in _IN_WORDS.items():
        text = text.replace(theirs, ours)
    return text


def _restored(values: Mapping[str, Mapping[str, Any]], content: Content) -> dict[str, Any]:
    return {name: restored(value, content) for name, value in values.items()}
