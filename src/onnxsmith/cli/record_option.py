"""Carries out the option `--record`: runs a command, and writes the record of what it did."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxsmith.base import devices
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.words import pasted
from onnxsmith.cli import command_words
from onnxsmith.cli.commands.base import Command
from onnxsmith.gate.records import record_file
from onnxsmith.gate.records.recording import Plan, Recording, not_written
from onnxsmith.graph.files.output_paths import free_path

__all__ = ["not_written", "plan", "run"]


def run(command: Command, record: str) -> Report:
    """Runs the command, and writes its record when its outputs are in place. Without a record, the report says why.

    Raises:
        OnnxsmithError: those of the command; `save/…`, `record/patch-file` if the record cannot be written there.
    """
    file = Path(record)
    _refuse(file, command)
    recording = Recording(plan(command))
    report = command.run()
    found = recording.record(report, _folder(file))
    if isinstance(found, Problem):
        return replace(report, problems=(*report.problems, found))
    record_file.write(found, file)
    return _with_file(report, record)


def plan(command: Command, **more: Any) -> Plan:
    """Returns what the options of a command say about its files."""
    seeds = [value for field, value in command_words.values(command) if field.name == "seed"]
    return Plan(
        words=command_words.words(command),
        reads=command_words.read(command),
        writes=tuple(command_words.written(command).values()),
        judged=command.subjects(),
        seed=seeds[0] if seeds else None,
        **more,
    )


def _folder(file: Path) -> str:
    """Returns the current folder relative to that of the record; the whole path on another drive."""
    try:
        return Path(os.path.relpath(Path.cwd(), os.path.realpath(file.parent))).as_posix()
    except ValueError:
        return Path.cwd().as_posix()


def _refuse(file: Path, command: Command) -> None:
    """Raises if the record cannot be written, before any work is done."""
    for path in [str(file), *command_words.written(command).values()]:
        devices.refuse(path, streams=False)
    refuse_missing(file.absolute().parent)
    if file.suffix == ".toml" and hasattr(command, "write_patch"):
        raise problem(
            "record/patch-file",
            "a record is a JSON file, but this is the name of a patch file",
            where=str(file),
            why="--record writes what was read, written and compared; --write-patch writes the steps of an edit",
            fix=f"add --record {pasted(file.with_suffix('.json'))} in its place; or --write-patch "
            f"{pasted(file)} for the steps",
        )
    if file.is_dir() or (file.is_file() and file.stat().st_size and not record_file.is_record(file)):
        raise problem(
            "save/needed",
            "the record would overwrite a file that is not a record",
            where=str(file),
            why="the existing file may still be needed",
            fix=f"give the record another name, such as {pasted(free_path(file.with_suffix('.record.json')))}",
        )


def _with_file(report: Report, record: str) -> Report:
    """Returns the report with the record among its written files."""
    size = Path(record).stat().st_size
    parts = [
        replace(one, files={**one.files, record: size}) if isinstance(one, Written) and one.files else one
        for one in report.parts
    ]
    if parts == list(report.parts):
        parts.append(Written({record: size}))
    return replace(report, parts=tuple(parts))
