"""Defines `verify_record`, which checks the files of a verification record and runs its command again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnxsmith.base import folders
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.records import (
    AS_RECORDED,
    CHANGED,
    MISSING,
    REPLACED,
    RecordCheck,
    RecordedField,
    RecordedFile,
)
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import first_few, pasted_words, several
from onnxsmith.comparison.outputs.compare import compare
from onnxsmith.gate.records import circumstances, named_files, record_file
from onnxsmith.gate.records.record_comparison import changes
from onnxsmith.gate.records.record_file import Record
from onnxsmith.gate.records.replay import Replay, replayed

_SHOWN = 3
"""Limits the files and fields that a sentence names. A choice."""
SAME_BYTES, OTHER_BYTES, NOT_WRITTEN = "same bytes", "other bytes", "not written"
_MODEL = ".onnx"
_KEPT = "do not rely on this record; compare it with the first copy, for example in the last commit"
_AGREE = f"{OTHER_BYTES}, the models agree"


def verify_record(file: str | Path, *, replay: bool = True) -> Result:
    """Checks a record that the option `--record` of a command wrote.

    Computes the SHA-256 of every file that the record names. Then runs the command of the record again, with its
    outputs in a temporary folder, and compares the verdict, the bytes of the outputs, and what was compared. With
    `replay=False`, nothing is run. Running the command again executes the Python files that the record names.

    The verdict is `done` if all is as recorded, `different` if something is not, `cannot-tell` if only another version
    or machine may explain a difference, `failed` if a file is missing or the command could not be run again.

    Raises:
        OnnxsmithError: `record/not-found`, `record/unreadable`, `record/newer`, `record/file-unreadable`,
            `record/replay-failed`.
    """
    path = Path(file)
    with Clock() as clock:
        record = record_file.read(path)
        check = _Check(record, path)
        with stage("hash"):
            check = check.with_files()
        if replay:
            check = check.if_it_can_run()
        if replay and not check.problems:
            with folders.temporary() as folder, stage("replay"):
                check = check.with_replay(replayed(record, path, folders.OwnPath(folder.resolve())))
        return Result(check.report(clock))


@dataclass(frozen=True)
class _Check:
    record: Record
    path: Path
    files: tuple[RecordedFile, ...] = ()
    fields: tuple[RecordedField, ...] = ()
    problems: tuple[Problem, ...] = ()
    replayed: bool = False

    @property
    def elsewhere(self) -> list[str]:
        return circumstances.changed(self.record)

    def with_files(self) -> _Check:
        """Computes the digests of all files again."""
        record, root = self.record, self.record.root(self.path)
        replaced = {name for name, digest in record.parents.items() if record.subjects.get(name, digest) != digest}
        rows = [RecordedFile(name, "about", _result(root / name, one)) for name, one in record.subjects.items()]
        rows += [
            RecordedFile(name, "read", REPLACED if name in replaced else _result(root / name, one))
            for name, one in record.parents.items()
            if record.subjects.get(name) != one
        ]
        return replace(self, files=tuple(rows), problems=tuple(_file_problems(self.path, rows)))

    def if_it_can_run(self) -> _Check:
        """Adds a problem if the command replaced a file that it read: it cannot run again."""
        names = [one.name for one in self.files if one.result == REPLACED]
        if not names:
            return self
        found = Problem(
            "record/replaced",
            f"the command cannot run again, because it replaced the files that it read ({first_few(names, _SHOWN)})",
            where=str(self.path),
            why="the record shows that the command changed the file",
            fix="add --no-replay to compare only the files; or restore the earlier file",
        )
        return replace(self, problems=(*self.problems, found))

    def with_replay(self, again: Replay) -> _Check:
        """Compares the record with that of the second run, and the files that the two runs wrote."""
        record, found = self.record, changes(self.record, again.record, elsewhere=bool(self.elsewhere))
        root = record.root(self.path)
        outcome = {name: _again(name, record, again, root) for name in record.subjects}
        files = tuple(
            replace(one, again=outcome.get(one.name, "") if one.role == "about" else "") for one in self.files
        )
        fields = tuple(RecordedField(one.field, one.recorded, one.now, one.explained) for one in found)
        unexplained = [one.field for one in fields if not one.explained]
        other = [
            name for name, said in outcome.items() if not (said == SAME_BYTES or (said == _AGREE and self.elsewhere))
        ]
        other += [f"{name} (new)" for name in again.record.subjects if name not in record.subjects]
        problems = [*self.problems]
        if unexplained:
            problems.append(self._changed(unexplained, fields))
        if other:
            problems.append(self._other_bytes(other, outcome))
        return replace(self, files=files, fields=fields, problems=tuple(problems), replayed=True)

    def _changed(self, names: Sequence[str], fields: Sequence[RecordedField]) -> Problem:
        first = next(one for one in fields if one.field == names[0])
        return Problem(
            "record/changed",
            f"the command has other results than the record: {first_few(names, _SHOWN)}",
            where=str(self.path),
            why=f"{first.field} is {first.now}, but the record has {first.recorded}{self._explanation()}",
            fix=_KEPT,
        )

    def _other_bytes(self, names: Sequence[str], outcome: dict[str, str]) -> Problem:
        first = names[0]
        return Problem(
            "record/other-bytes",
            f"the command writes other bytes than the record has: {first_few(names, _SHOWN)}",
            where=str(self.path),
            why=f"{first}: {outcome.get(first, 'the record does not list this file')}{self._explanation()}",
            fix=_KEPT,
        )

    def _explanation(self) -> str:
        other = self.elsewhere
        return f"; another version or machine may be the cause ({first_few(other, _SHOWN)})" if other else ""

    @property
    def verdict(self) -> Verdict:
        """Returns what the problems mean together."""
        ids = {one.id for one in self.problems}
        if "record/file-changed" in ids:
            return Verdict.DIFFERENT
        if ids & {"record/file-missing", "record/replaced"}:
            return Verdict.FAILED
        if not ids:
            return Verdict.DONE
        return Verdict.CANNOT_TELL if self.elsewhere else Verdict.DIFFERENT

    def report(self, clock: Clock) -> Report:
        """Returns the report of the check."""
        record, other = self.record, self.elsewhere
        part = RecordCheck(
            str(self.path),
            pasted_words(record.command),
            record.verdict,
            self.files,
            self.replayed,
            self.fields,
            tuple(other),
        )
        notes = []
        if other:
            notes.append(f"recorded under other conditions ({'; '.join(other)}), so numbers and bytes may differ")
        if record.unknown:
            notes.append(f"not checked, because this version does not know these fields: {', '.join(record.unknown)}")
        explained = [one.field for one in self.fields if one.explained]
        if explained:
            notes.append(
                f"values that differ from the record because of these conditions: {first_few(explained, _SHOWN)}"
            )
        return Report(
            "verify-record",
            self.verdict,
            (part, Timing(clock.passed())),
            problems=self.problems,
            notes=tuple(notes),
            headline=f"{self.path}: {self._headline()}",
        )

    def _headline(self) -> str:
        if self.problems:
            return self.problems[0].what
        count = several(len(self.files), "file")
        if not self.replayed:
            return f"{count} as recorded; the command was not run again"
        agree = [one.name for one in self.files if one.again == _AGREE]
        bytes_ = f"other bytes, the models agree ({', '.join(agree)})" if agree else "the same bytes"
        return f"{count} as recorded; run again: verdict {self.record.verdict}, {bytes_}"


def _result(file: Path, digest: str) -> str:
    if not named_files.exists(file):
        return MISSING
    return AS_RECORDED if named_files.digests([file])[file.as_posix()] == digest else CHANGED


def _file_problems(path: Path, rows: Sequence[RecordedFile]) -> list[Problem]:
    groups = {result: [one.name for one in rows if one.result == result] for result in (CHANGED, MISSING, REPLACED)}
    found = []
    if names := groups[CHANGED]:
        found.append(
            Problem(
                "record/file-changed",
                f"{several(len(names), 'file')} changed since the record was written: {first_few(names, _SHOWN)}",
                where=str(path),
                why="the file's SHA-256 differs from the recorded SHA-256",
                fix="restore the recorded file; or run the command again with `--record`",
            )
        )
    if names := groups[MISSING]:
        found.append(
            Problem(
                "record/file-missing",
                f"{several(len(names), 'file')} of the record {'is' if len(names) == 1 else 'are'} missing: "
                f"{first_few(names, _SHOWN)}",
                where=str(path),
                why="names in a record are relative to the folder in which the command ran",
                fix="restore the file; or move the record to the folder of the files",
            )
        )
    return found


def _again(name: str, record: Record, again: Replay, root: Path) -> str:
    """Says how a file that the second run wrote compares with the recorded one. A data file goes with its model."""
    if name not in again.record.subjects:
        return NOT_WRITTEN
    if again.record.subjects[name] == record.subjects[name] and Path(name).suffix != _MODEL:
        return SAME_BYTES
    models = [one for one in record.subjects if Path(one).suffix == _MODEL and one in again.files]
    owner = next((one for one in models if root / name in list(named_files.whole(root / one))), None)
    if owner is None:
        return SAME_BYTES if again.record.subjects[name] == record.subjects[name] else OTHER_BYTES
    parts = [one.relative_to(root).as_posix() for one in named_files.whole(root / owner)]
    if all(again.record.subjects.get(one) == record.subjects.get(one) for one in parts):
        return SAME_BYTES
    return _compared(root / owner, again.files[owner])


def _compared(recorded: Path, now: Path) -> str:
    """Compares two models whose bytes differ."""
    try:
        found = compare(recorded, now).report.verdict
    except OnnxsmithError as error:
        return f"{OTHER_BYTES}, the models cannot be compared ({error.problem.id})"
    if found is Verdict.DONE:
        return _AGREE
    return f"{OTHER_BYTES}, the models {'differ' if found is Verdict.DIFFERENT else 'may differ'}"
