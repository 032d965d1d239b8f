"""Measures a model again on the recorded inputs, and says what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.baselines import UNKNOWN, WORSE
from onnxsmith.base.words import first_few
from onnxsmith.deployment.benching.baseline import here, moved
from onnxsmith.gate.baselines import target_stages, times
from onnxsmith.gate.baselines.change import Change, in_order
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import Entry, StoredTarget
from onnxsmith.gate.baselines.facts import Facts, facts, versions
from onnxsmith.gate.baselines.facts_comparison import content_changes, interface_changes, size_changes
from onnxsmith.gate.baselines.number_comparison import Numbers, compared_numbers
from onnxsmith.gate.baselines.outline import from_bytes
from onnxsmith.gate.baselines.recording import first_inputs
from onnxsmith.gate.baselines.settings import Settings

_SHOWN = 2
"""Limits the outputs that a change names. A choice."""


@dataclass(frozen=True)
class Held:
    """Holds what changed of a model, the worst first, and how it is now. `moved` says in words which versions and which
    facts of the machine differ."""

    changes: tuple[Change, ...]
    nodes: int
    bytes: int
    moved: tuple[str, ...]
    time: float | None = None
    targets: dict[str, StoredTarget] | None = None


def held(file: Path, entry: Entry, content: Content, settings: Settings) -> Held:
    """Compares a model file with its entry.

    Raises:
        OnnxsmithError: the errors of loading the model, of its runtime, of `check` and of `bench`.
    """
    with stage("load"):
        now = facts(file, entry)
    interface = list(interface_changes(entry, now))
    with stage("run"):
        numbers = _numbers(file, entry, content, now)
    wrong = numbers.wrong
    was = from_bytes(content.held[entry.outline]) if entry.outline else None
    own = list(content_changes(entry, now, was, is_worse=bool(wrong), is_unseen=bool(entry.cases) and numbers.exact))
    since = moved(entry.versions, versions(entry.runtime)), moved(entry.machine, here())
    changes = [*interface, *_with_numbers(own, wrong, bool(interface), *since)]
    changes += size_changes(entry, now, settings.allow_size)
    if not entry.cases:
        changes.append(Change("numbers", UNKNOWN, "no input is recorded, so no outputs were compared"))
    values = first_inputs(entry.cases, content)
    found, time = {}, None
    if entry.targets:
        with stage("targets"):
            found = target_stages.stages(file, list(entry.targets), {} if interface else values)
        changes += target_stages.target_changes(entry.targets, found)
    if settings.times and entry.times is not None and not interface:
        with stage("measure"):
            more, time = times.time_changes(
                file, values, entry.times, runtime=entry.runtime, seconds=settings.seconds, allow=settings.allow
            )
        changes += more
    return Held(
        tuple(in_order(changes)),
        sum(now.nodes.values()),
        sum(now.bytes.values()),
        (*since[0], *since[1]),
        time,
        found,
    )


def _numbers(file: Path, entry: Entry, content: Content, now: Facts) -> Numbers:
    try:
        return compared_numbers(file, entry, content, now)
    except OnnxsmithError as error:
        if error.problem.id.startswith("runtime/") and error.problem.id not in _TOOL:
            return Numbers([f"{entry.runtime} refuses the model: {error.problem.what}"], exact=False)
        raise


_TOOL = ("runtime/not-installed", "runtime/unknown", "runtime/unknown-option", "runtime/timeout")
"""Names the problems that say nothing about the model."""


def _with_numbers(
    own: list[Change], wrong: list[str], of_interface: bool, versions: list[str], machine: list[str]
) -> Iterator[Change]:
    """Yields the changes of the model. The first cause has the numbers that follow from all of them. If the model is
    the same, other numbers come from the runtime, from the machine, or from run to run."""
    said = first_few(wrong, _SHOWN, "; ")
    causes = list(in_order(one for one in own if one.kind in ("weights", "graph")))
    for one in own:
        more = said if one in causes[:1] else ""
        also = f"; changed versions may also be the cause: {', '.join(versions)}" if more and versions else ""
        yield Change(one.kind, one.result, f"{one.what}; {more}{also}" if more else one.what)
    if not wrong or causes:
        return
    if of_interface:
        yield Change("interface", WORSE, f"with the same graph and weights: {said}")
    elif versions:
        yield Change(
            "runtime",
            WORSE,
            f"the same graph and weights compute other results after a change of versions ({', '.join(versions)}): "
            f"{said}",
        )
    elif machine:
        yield Change(
            "machine",
            WORSE,
            f"the same graph and weights compute other results on another machine ({', '.join(machine)}): {said}",
        )
    else:
        what = "the same graph and weights compute other results with the same versions on the same machine"
        yield Change("unsteady", WORSE, f"{what}: {said}")
