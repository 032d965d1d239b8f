"""The actions of `baseline`: record, check, accept, drop."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onnxsmith.base.clock import Clock
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.baselines import ACCEPTED, BaselineChange, BaselineModel, Baselines
from onnxsmith.base.report.parts.written_files import Timing, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, pasted
from onnxsmith.gate.baselines import baseline_file, data_file
from onnxsmith.gate.baselines.baseline_file import Baseline
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import Acceptance, Dropped, Entry
from onnxsmith.gate.baselines.findings import Found, report
from onnxsmith.gate.baselines.model_steps import naming, steps
from onnxsmith.gate.baselines.recorder import Recorder
from onnxsmith.gate.baselines.settings import USUAL, Settings, size_texts
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies

if TYPE_CHECKING:
    from onnxsmith.gate.baselines.holding import Held

_OF_THE_MODEL = {"interface", "weights", "graph", "runtime", "machine", "unsteady", "target", "size", "nodes"}
"""Names the changes over which `record` does not write: they need a reason."""
_SHOWN = 3
"""Limits the models that a headline names, and the changes in a problem. A choice."""


@identifies("models")
def record(models: Sequence[str | Path], path: str | Path, settings: Settings = USUAL) -> Report:
    """Measures models, and writes what they give and cost to a baseline at `path`. Entries of other models stay. The
    entry of a model that has not changed stays as it is, with its times.

    A model that cannot be recorded does not stop the others: the report has its problem, and the verdict is `failed`.
    After Ctrl-C, the models that were recorded until then are written.

    Raises:
        OnnxsmithError: `gate/no-model`; the errors of reading and writing the baseline; if there is only one model:
            `gate/already-recorded` if it has changed, `gate/entry-changed`, `gate/random`, and the errors of loading,
            running and measuring it.
        Stopped: after Ctrl-C.
    """
    with Clock() as clock, _writing(models, path, "record") as target:
        is_new = not target.exists()
        old = Baseline(target, {}, Content()) if is_new else baseline_file.read(target)
        recorder = Recorder(old, settings, "recorded")
        recorder.each(models, lambda model: _record(recorder, model))
        return recorder.report(clock)


def _record(recorder: Recorder, model: Path) -> None:
    old, settings = recorder.old, recorder.settings
    name = old.name_of(model)
    before = old.entries.get(name)
    if before is not None:
        old.refuse_edited(model)
        now = _held(model, before, old.content, replace(settings, times=False))
        _refuse_changed(old, model, now, settings)
        if not _is_wanted(before, now, settings):
            recorder.keep(name)
            return
    recorder.add(model, before, before.history if before is not None else ())


@identifies("models")
def check(models: Sequence[str | Path], path: str | Path, settings: Settings = USUAL) -> Report:
    """Measures models again on the recorded inputs, and says what changed, with its cause. Without `models`, all models
    of the baseline are measured. A recorded model whose file is gone is always reported.

    The verdict is `different` if something is worse than recorded, `cannot-tell` if something that was recorded could
    not be compared, or a model is new, `failed` if a model could not be loaded or measured, or if its entry was changed
    by hand.

    Raises:
        OnnxsmithError: `gate/not-in-baseline` if none of the models is in the baseline, nor a file; `gate/no-model` if
            no model was given and the baseline has none; the errors of reading the baseline.
    """
    with Clock() as clock:
        baseline = baseline_file.read(Path(path), models)
        if models and not any(baseline.name_of(one) in baseline.entries or Path(one).exists() for one in models):
            baseline.entry(models[0])
        if not models and not baseline.entries:
            raise problem(
                "gate/no-model",
                "the baseline has no models, so nothing can be checked",
                where=str(path),
                fix=f"record a model: `onnxsmith baseline record m.onnx -o {pasted(path)}`",
            )
        asked = {baseline.name_of(one): Path(one) for one in models}
        known = asked or {name: baseline.file_of(name) for name in baseline.entries}
        there = {name: file for name, file in known.items() if name not in baseline.entries or file.exists()}
        found = [_found(baseline, name, there[name], settings) for name in steps(list(there), settings)]
        gone = [Found(name, one, gone=True) for name, one in baseline.entries.items() if not _is_there(baseline, name)]
        return report(baseline, [*gone, *found], settings, clock)


def check_one(model: str | Path, path: str | Path, settings: Settings = USUAL) -> Report:
    """Checks one model, and no other of the baseline.

    Raises:
        OnnxsmithError: the errors of `check`.
    """
    with Clock() as clock:
        baseline = baseline_file.read(Path(path), [model])
        name = baseline.name_of(model)
        if name not in baseline.entries and Path(model).exists():
            return report(baseline, [Found(name, None, file=Path(model))], settings, clock)
        entry = baseline.entry(model)
        baseline.refuse_edited(model)
        now = _held(Path(model), entry, baseline.content, settings)
        return report(baseline, [Found(name, entry, held=now)], settings, clock)


@identifies("models")
def accept(models: Sequence[str | Path], path: str | Path, reason: str, settings: Settings = USUAL) -> Report:
    """Records models anew, and appends the date, the reason and what changed to the history of their entries. The
    recorded inputs stay, if a model still takes them. An entry that was changed by hand is recorded anew, too.

    A model that cannot be accepted does not stop the others, as in `record`.

    Raises:
        OnnxsmithError: `gate/no-model`, `gate/no-reason`; the errors of reading and writing the baseline; if there is
            only one model: `gate/not-in-baseline`, `gate/nothing-changed`, and the errors of loading, running and
            measuring it.
        Stopped: after Ctrl-C.
    """
    with Clock() as clock, _writing(models, path, "accept") as target:
        old = baseline_file.read(target, models)
        _refuse_no_reason(models, reason)
        recorder = Recorder(old, settings, ACCEPTED)
        recorder.each(models, lambda model: _accept(recorder, model, reason.strip()))
        return recorder.report(clock, reason.strip())


def _accept(recorder: Recorder, model: Path, reason: str) -> None:
    old = recorder.old
    name, before = old.name_of(model), old.entry(model)
    changes, moved = [BaselineChange(name, "entry", ACCEPTED, "it was changed by hand")], []
    if name not in old.edited:
        now = _held(model, before, old.content, recorder.settings)
        changes = [BaselineChange(name, one.kind, ACCEPTED, one.what) for one in now.changes]
        moved = list(now.moved)
        moved += _other_settings(before, recorder.settings)
        if not changes and not moved:
            raise _nothing_changed(old, model)
    said = [f"{one.kind}: {one.what}" for one in changes] + moved
    recorder.add(model, before, [*before.history, Acceptance(_today(), reason, said)], changes)


@identifies("models")
def drop(models: Sequence[str | Path], path: str | Path, reason: str) -> Report:
    """Removes the entries of models from a baseline, and keeps the date and the reason in it. The files of the models
    are not needed, and not touched.

    Raises:
        OnnxsmithError: `gate/no-model`, `gate/no-reason`, `gate/not-in-baseline`; the errors of reading and writing the
            baseline.
    """
    with Clock() as clock, _writing(models, path, "drop") as target:
        old = baseline_file.read(target, models)
        _refuse_no_reason(models, reason)
        gone = {old.name_of(model): old.entry(model) for model in models}
        entries = {name: entry for name, entry in old.entries.items() if name not in gone}
        dropped = [*old.dropped, *(Dropped(name, _today(), reason.strip()) for name in gone)]
        files = baseline_file.write(replace(old, entries=entries, dropped=dropped))
        rows = [BaselineModel(name, "dropped", len(one.cases), one.node_count, one.size) for name, one in gone.items()]
        return Report(
            "baseline",
            Verdict.DONE,
            (Baselines(str(target), tuple(rows)), written(files), Timing(clock.passed())),
            headline=f"{target}: dropped {first_few(list(gone), _SHOWN)}: {reason.strip()}",
        )


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


@contextmanager
def _writing(models: Sequence[str | Path], path: str | Path, action: str) -> Iterator[Path]:
    """Yields the path of a baseline that the block reads and writes, and no other process in that time."""
    target = Path(path)
    if not models:
        raise problem(
            "gate/no-model", "no model was given", fix=f"name the models: `onnxsmith baseline {action} m.onnx`"
        )
    refuse_loss([target, data_file.beside(target)], models)
    baseline_file.refuse_unwritable(target)
    with baseline_file.alone(target):
        yield target


def _refuse_no_reason(models: Sequence[str | Path], reason: str) -> None:
    if not reason.strip():
        raise problem(
            "gate/no-reason",
            "a change of the baseline needs a reason",
            where=", ".join(map(str, models)),
            why="the baseline stores the reason, so that others can see later why the model changed",
            fix='give a reason: --reason "trained on more data"',
        )


def _held(file: Path, entry: Entry, content: Content, settings: Settings) -> Held:
    from onnxsmith.gate.baselines.holding import held  # slow to import: a refusal comes without it

    return held(file, entry, content, settings)


def _is_there(baseline: Baseline, name: str) -> bool:
    return (baseline.path.parent / name).exists()


def _found(baseline: Baseline, name: str, file: Path, settings: Settings) -> Found:
    entry = baseline.entries.get(name)
    if entry is None:
        return Found(name, None, file=file)
    try:
        with naming(file):
            baseline.refuse_edited(file)
            return Found(name, entry, held=_held(file, entry, baseline.content, settings))
    except OnnxsmithError as error:
        return Found(name, entry, error=error.problem)


def _is_wanted(before: Entry, now: Held, settings: Settings) -> bool:
    """Whether an unchanged model is recorded again: its circumstances changed, or more is asked for."""
    untimed = before.times is None or before.times.low is None  # None: there were too few rounds
    more = set(settings.targets) - before.targets.keys()
    other = settings.runtime not in (None, before.runtime)
    return bool(now.changes or now.moved or more or other or (settings.times and untimed))


def _other_settings(before: Entry, settings: Settings) -> list[str]:
    """Returns in words which sizes and tolerance are asked for that the entry does not have."""
    said = []
    if settings.tolerance not in (None, before.tolerance):
        was = "estimated from rounding" if before.tolerance is None else f"{before.tolerance:g}"
        said.append(f"tolerance: {was} → {settings.tolerance:g}")
    asked = size_texts(settings.sizes)
    if asked and asked != before.sizes:
        was, now = (", ".join(f"{name}={size}" for name, size in one.items()) for one in (before.sizes, asked))
        said.append(f"sizes of inputs: {was or 'chosen'} → {now}")
    return said


def _refuse_changed(old: Baseline, model: str | Path, now: Held, settings: Settings) -> None:
    before = old.entry(model)
    changed = [f"{one.kind}: {one.what}" for one in now.changes if one.kind in _OF_THE_MODEL]
    changed += _other_settings(before, settings)
    if changed:
        raise problem(
            "gate/already-recorded",
            f"the baseline has a different state of {old.name_of(model)}",
            where=str(old.path),
            why="; ".join(changed[:_SHOWN]),
            fix=f'accept the change: `{old.command("accept", model)} --reason "why it changed"'
            f"{settings.time_option(timed=before.times is not None)}`; or record into another file: -o other.json",
        )


def _nothing_changed(old: Baseline, model: str | Path) -> OnnxsmithError:
    return problem(
        "gate/nothing-changed",
        f"{old.name_of(model)} is as recorded, so there is nothing to accept",
        where=str(old.path),
        fix=f"leave this model out; `{old.command('check', model)}` compares it with its entry",
    )
