"""The actions of `baseline`: record, check, accept."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from onnxsmith.base.clock import Clock
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.baselines import BaselineChange, Baselines
from onnxsmith.base.report.parts.written_files import Timing, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, several
from onnxsmith.gate.baselines import baseline_file, data_file
from onnxsmith.gate.baselines.baseline_file import Baseline
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import Acceptance, Entry
from onnxsmith.gate.baselines.findings import Found, report, row
from onnxsmith.gate.baselines.holding import Held, held
from onnxsmith.gate.baselines.recording import entry_of
from onnxsmith.gate.baselines.settings import USUAL, Settings
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies

_OF_THE_MODEL = {"interface", "weights", "graph", "runtime", "machine", "unsteady", "target", "size", "nodes"}
"""Names the changes over which `record` does not write: they need a reason."""
_SHOWN = 3
"""Limits the models that a headline names. A choice."""


@identifies("models")
def record(models: Sequence[str | Path], path: str | Path, settings: Settings = USUAL) -> Report:
    """Measures models, and writes what they give and cost to a baseline at `path`. Entries of other models stay. The
    entry of a model that has not changed stays as it is, with its times.

    Raises:
        OnnxsmithError: `gate/no-model`; `gate/already-recorded` if a recorded model has changed; the errors of reading
            the baseline, and of loading, running and measuring a model.
    """
    with Clock() as clock:
        target = _target(models, path)
        is_new = not target.exists()
        old = Baseline(target, {}, Content()) if is_new else baseline_file.read(target)
        entries, content, notes, rows = dict(old.entries), Content(dict(old.content.held)), [], []
        for model in models:
            name, before = old.name_of(model), old.entries.get(old.name_of(model))
            with _naming(model):
                if before is not None:
                    now = held(Path(model), before, old.content, replace(settings, times=False))
                    _refuse_changed(old, model, now)
                    if not _is_wanted(before, now, settings):
                        rows.append(row(name, "as recorded", before))
                        continue
                history = before.history if before is not None else ()
                entries[name], said = entry_of(Path(model), content, settings, before, history=history)
            rows.append(row(name, "recorded", entries[name]))
            notes += [f"{name}: {one}" for one in said]
        files = baseline_file.write(Baseline(target, entries, content))
        kept = sum(one.result == "as recorded" for one in rows)
        headline = f"{target}: {several(len(rows) - kept, 'model')} recorded"
        return Report(
            "baseline",
            Verdict.DONE,
            (Baselines(str(target), tuple(rows)), written(files), Timing(clock.passed())),
            notes=tuple(notes),
            headline=f"{headline}, {kept} unchanged" if kept else headline,
        )


@identifies("models")
def check(models: Sequence[str | Path], path: str | Path, settings: Settings = USUAL) -> Report:
    """Measures models again on the recorded inputs, and says what changed, with its cause. Without `models`, all models
    of the baseline are measured. A recorded model whose file is gone is always reported.

    The verdict is `different` if something is worse than recorded, `cannot-tell` if something that was recorded could
    not be compared, or a model is new, `failed` if a model could not be loaded or measured.

    Raises:
        OnnxsmithError: `gate/not-in-baseline` if none of the models is in the baseline; the errors of reading it.
    """
    with Clock() as clock:
        baseline = baseline_file.read(Path(path), models)
        if models and not any(baseline.name_of(one) in baseline.entries for one in models):
            baseline.entry(models[0])
        asked = {baseline.name_of(one): Path(one) for one in models}
        known = asked or {name: baseline.file_of(name) for name in baseline.entries}
        found = [
            _found(baseline, name, file, settings)
            for name, file in known.items()
            if name not in baseline.entries or file.exists()
        ]
        gone = [Found(name, one, gone=True) for name, one in baseline.entries.items() if not _is_there(baseline, name)]
        return report(baseline, [*gone, *found], settings, clock)


def check_one(model: str | Path, path: str | Path, settings: Settings = USUAL) -> Report:
    """Checks one model, and no other of the baseline.

    Raises:
        OnnxsmithError: `gate/not-in-baseline`, and the errors of `check`.
    """
    with Clock() as clock:
        baseline = baseline_file.read(Path(path), [model])
        entry = baseline.entry(model)
        now = held(Path(model), entry, baseline.content, settings)
        return report(baseline, [Found(baseline.name_of(model), entry, held=now)], settings, clock)


@identifies("models")
def accept(models: Sequence[str | Path], path: str | Path, reason: str, settings: Settings = USUAL) -> Report:
    """Records models anew, and appends the date, the reason and what changed to the history of their entries. The
    recorded inputs stay, if a model still takes them.

    Raises:
        OnnxsmithError: `gate/no-model`, `gate/no-reason`; `gate/not-in-baseline`; `gate/nothing-changed`; the errors of
            reading the baseline, and of loading, running and measuring a model.
    """
    with Clock() as clock:
        target = _target(models, path)
        old = baseline_file.read(target, models)
        if not reason.strip():
            raise problem(
                "gate/no-reason",
                "a change is accepted with a reason",
                where=", ".join(map(str, models)),
                why="the reason stays in the baseline, for whoever asks later why the model changed",
                fix='give one: --reason "trained on more data"',
            )
        entries, content, notes, rows, changes = dict(old.entries), Content(dict(old.content.held)), [], [], []
        for model in models:
            name, before = old.name_of(model), old.entry(model)
            with _naming(model):
                now = held(Path(model), before, old.content, settings)
            changed = [f"{one.kind}: {one.what}" for one in now.changes] + list(now.moved)
            if not changed:
                raise _nothing_changed(old, model)
            today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
            history = [*before.history, Acceptance(today, reason.strip(), changed)]
            with _naming(model):
                entries[name], said = entry_of(Path(model), content, settings, before, history=history)
            rows.append(row(name, "accepted", entries[name]))
            notes += [f"{name}: {one}" for one in said]
            changes += [BaselineChange(name, one.kind, one.result, one.what) for one in now.changes]
        files = baseline_file.write(Baseline(target, entries, content))
        return Report(
            "baseline",
            Verdict.DONE,
            (Baselines(str(target), tuple(rows), tuple(changes)), written(files), Timing(clock.passed())),
            notes=tuple(notes),
            headline=f"{target}: accepted {first_few([one.model for one in rows], _SHOWN)}: {reason.strip()}",
        )


def _target(models: Sequence[str | Path], path: str | Path) -> Path:
    target = Path(path)
    if not models:
        raise problem("gate/no-model", "no model was given", fix="name the models: `onnxsmith baseline record m.onnx`")
    refuse_loss([target, data_file.beside(target)], models)
    baseline_file.refuse_unwritable(target)
    return target


def _is_there(baseline: Baseline, name: str) -> bool:
    return (baseline.path.parent / name).exists()


def _found(baseline: Baseline, name: str, file: Path, settings: Settings) -> Found:
    entry = baseline.entries.get(name)
    if entry is None:
        return Found(name, None, file=file)
    try:
        with _naming(file):
            return Found(name, entry, held=held(file, entry, baseline.content, settings))
    except OnnxsmithError as error:
        return Found(name, entry, error=error.problem)


@contextmanager
def _naming(model: str | Path) -> Iterator[None]:
    """Lets an error say at which of the models it happened."""
    try:
        yield
    except OnnxsmithError as error:
        if str(model) in f"{error.problem.what} {error.problem.where}":
            raise
        raise error.at(str(model)) from error


def _is_wanted(before: Entry, now: Held, settings: Settings) -> bool:
    """Whether an unchanged model is recorded again: its circumstances changed, or more is asked for."""
    more = set(settings.targets) - before.targets.keys()
    other = settings.runtime not in (None, before.runtime)
    untimed = before.times is None or before.times.low is None  # None: there were too few rounds
    return bool(now.changes or now.moved or more or other or (settings.times and untimed))


def _refuse_changed(old: Baseline, model: str | Path, now: Held) -> None:
    changed = [one for one in now.changes if one.kind in _OF_THE_MODEL]
    if changed:
        raise problem(
            "gate/already-recorded",
            f"the baseline has another state of {old.name_of(model)}",
            where=str(old.path),
            why="; ".join(f"{one.kind}: {one.what}" for one in changed[:_SHOWN]),
            fix=f'accept the change: `{old.command("accept", model)} --reason "why it changed"`; or record into '
            "another file: -o other.json",
        )


def _nothing_changed(old: Baseline, model: str | Path) -> OnnxsmithError:
    return problem(
        "gate/nothing-changed",
        f"{old.name_of(model)} is as recorded, so there is nothing to accept",
        where=str(old.path),
        fix=f"leave it out; `{old.command('check', model)}` shows how it compares",
    )
