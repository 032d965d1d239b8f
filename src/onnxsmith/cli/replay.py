"""Runs the command of a record again, for `verify-record`, which starts a process for it.

The record is a file that anyone may have changed. So only commands that have the option `--record` run, and all that
they write goes into a folder that is removed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application, command_words, fix_trial, record_option
from onnxsmith.cli.commands.base import Command
from onnxsmith.gate.records import record_file
from onnxsmith.gate.records.record_file import Record
from onnxsmith.gate.records.recording import Recording
from onnxsmith.gate.records.replay import ANSWER, JOB, RECORD


def main(place: str) -> None:
    """Runs the command in the file `job.json` of the folder `place`, in the current folder. Writes `answer.json`, and
    `record.json` unless the command fails."""
    folder = Path(place)
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    try:
        report, files = _run(job["command"], job["subjects"], folder)
    except OnnxsmithError as error:
        report, files = Report("verify-record", Verdict.FAILED, problems=(error.problem,)), {}
    (folder / ANSWER).write_text(json.dumps({"report": report.to_dict(), "files": files}), encoding="utf-8")


def _run(words: Sequence[str], subjects: Sequence[str], folder: Path) -> tuple[Report, dict[str, str]]:
    """Runs a command with its outputs in the folder. Returns its report, and the paths of its outputs by the names in
    the record."""
    typed = application.command(words)
    if type(typed).subjects is Command.subjects:
        raise problem("record/unreadable", f"no record is written of `onnxsmith {words[0]}`", fix="check the record")
    moved = fix_trial.elsewhere(typed, folder)
    names = dict(zip(command_words.written(moved).values(), command_words.written(typed).values(), strict=True))
    for path, name in names.items():
        _take_names(Path(path), name, subjects)
    plan = record_option.plan(moved, names=names)
    recording = Recording(plan)
    report = application.run_quietly(moved)
    found = recording.record(report, ".")
    if not isinstance(found, Record):
        return report, {}
    record_file.write(found, folder / RECORD)
    places = {name: path for path, name in names.items()}
    return report, {name: _place(name, places) for name in found.subjects}


def _place(name: str, places: dict[str, str]) -> str:
    """Returns the path of a file that the command wrote to the place of an output, or beside or below it."""
    for output, path in places.items():
        if name.startswith(output):
            return path + name[len(output) :]
    return name


def _take_names(path: Path, name: str, subjects: Sequence[str]) -> None:
    """Makes empty files for the names of data files that were taken when the model was first written, so that its data
    gets the recorded name again: `m.onnx.2.data` if there was an `m.onnx.data`."""
    numbers = [1 if one == f"{name}.data" else _number(one, name) for one in subjects]
    for number in range(1, max(numbers, default=0)):
        Path(f"{path}.data" if number == 1 else f"{path}.{number}.data").touch()


def _number(one: str, name: str) -> int:
    text = one.removeprefix(f"{name}.").removesuffix(".data")
    return int(text) if one == f"{name}.{text}.data" and text.isdigit() else 0
