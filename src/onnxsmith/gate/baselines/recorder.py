"""Changes a copy of a baseline model by model, writes what was done, and reports what was not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from onnxsmith.base.clock import Clock
from onnxsmith.base.interrupts import Stopped
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.baselines import BaselineChange, BaselineModel, Baselines
from onnxsmith.base.report.parts.written_files import Timing, Written, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import first_few, several
from onnxsmith.gate.baselines import baseline_file
from onnxsmith.gate.baselines.baseline_file import Baseline
from onnxsmith.gate.baselines.baseline_text import sealed
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import Acceptance, Entry
from onnxsmith.gate.baselines.findings import row
from onnxsmith.gate.baselines.model_steps import naming, steps
from onnxsmith.gate.baselines.settings import Settings

_SHOWN = 3
"""Limits the models that a headline names. A choice."""
KEPT = "as recorded"
FAILED = "failed"


class Recorder:
    """Holds a baseline while its entries are measured. `result` is what a model is called that was done: `recorded` or
    `accepted`."""

    def __init__(self, old: Baseline, settings: Settings, result: str) -> None:
        self.old, self.settings, self._result = old, settings, result
        self._entries, self._content = dict(old.entries), Content(dict(old.content.held))
        self._edited = set(old.edited)
        self._rows: list[BaselineModel] = []
        self._notes: list[str] = []
        self._changes: list[BaselineChange] = []
        self._problems: list[Problem] = []

    def each(self, models: Sequence[str | Path], act: Callable[[Path], None]) -> None:
        """Calls `act` for each model. The problem of a model is noted, and the others follow. If only one model was
        asked for, its problem is raised.

        Raises:
            OnnxsmithError: the problem of the only model.
            Stopped: after Ctrl-C; what was done until then is written.
        """
        try:
            for model in steps(models, self.settings):
                try:
                    with naming(model):
                        act(Path(model))
                except OnnxsmithError as error:
                    if len(models) == 1:
                        raise
                    self._problems.append(error.problem)
                    self._rows.append(BaselineModel(self.old.name_of(model), FAILED))
        except KeyboardInterrupt as stop:
            raise Stopped(self._kept(len(models))) from stop

    def _kept(self, asked: int) -> str:
        done = self._names(self._result)
        if done:
            self._write()
        words = first_few(done, _SHOWN) if done else "none"
        return f"{len(done)} of {several(asked, 'model')} {self._result} in {self.old.path}: {words}"

    def keep(self, name: str) -> None:
        """Keeps the entry of a model as it is."""
        self._rows.append(row(name, KEPT, self._entries[name]))

    def add(
        self,
        model: Path,
        before: Entry | None,
        history: Sequence[Acceptance] = (),
        changes: Sequence[BaselineChange] = (),
    ) -> None:
        """Measures a model, and replaces its entry.

        Raises:
            OnnxsmithError: the errors of loading, running and measuring the model.
        """
        from onnxsmith.gate.baselines import recording  # slow to import: a refusal comes without it

        name = self.old.name_of(model)
        entry, said = recording.entry_of(model, self._content, self.settings, before, history=history)
        self._entries[name] = sealed(entry)
        self._edited.discard(name)
        self._rows.append(row(name, self._result, entry))
        self._notes += [f"{name}: {one}" for one in said]
        self._changes += changes

    def report(self, clock: Clock, reason: str = "") -> Report:
        """Writes the baseline if a model was done or kept, and returns the report.

        Raises:
            OnnxsmithError: `save/…`.
        """
        done, kept, failed = (self._names(result) for result in (self._result, KEPT, FAILED))
        files = written(self._write()) if done or kept else Written({}, f"no model could be {self._result}")
        said = [f"{several(len(done), 'model')} {self._result}"]
        said += [f"{len(kept)} unchanged"] if kept else []
        said += [f"{len(failed)} NOT {self._result} ({first_few(failed, _SHOWN)})"] if failed else []
        return Report(
            "baseline",
            Verdict.FAILED if failed else Verdict.DONE,
            (Baselines(str(self.old.path), tuple(self._rows), tuple(self._changes)), files, Timing(clock.passed())),
            tuple(self._problems),
            notes=tuple(self._notes),
            headline=f"{self.old.path}: {', '.join(said)}{f': {reason}' if reason and done else ''}",
        )

    def _names(self, result: str) -> list[str]:
        return [one.model for one in self._rows if one.result == result]

    def _write(self) -> list[Path]:
        return baseline_file.write(
            replace(self.old, entries=self._entries, content=self._content, edited=frozenset(self._edited))
        )
