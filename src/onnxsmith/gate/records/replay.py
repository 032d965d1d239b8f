"""Runs the command of a record again, in a process of its own. Its outputs go into a temporary folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.base.folders import OwnPath
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.short_traceback import without_traceback
from onnxsmith.base.system import children
from onnxsmith.gate.records import record_file
from onnxsmith.gate.records.record_file import Record

_MODULE = "onnxsmith.cli.replay"
_BOOT = "import sys; sys.path[:0] = {paths!r}; from {module} import main; main({folder!r})"
"""Starts the command line's own replay: it knows which words of a command are outputs. It is named in a text, because
no module of the gate imports the command line."""
_TAIL = 1000
"""Limits the characters of a failed process's output that an error shows, counted from the end."""
JOB, ANSWER, RECORD = "job.json", "answer.json", "record.json"


@dataclass(frozen=True)
class Replay:
    """What the second run gave: its record, and the path of each file that it wrote, by the name in the record."""

    record: Record
    files: Mapping[str, Path]


def replayed(record: Record, file: Path, folder: OwnPath) -> Replay:
    """Runs the command of the record in `file` again, and writes into `folder`.

    Raises:
        OnnxsmithError: `record/replay-failed`.
    """
    job = {"command": record.command, "subjects": list(record.subjects)}
    (folder / JOB).write_text(json.dumps(job), encoding="utf-8")
    paths = [str(Path(path).absolute()) for path in sys.path if path]
    said = _output(
        [sys.executable, "-P", "-c", _BOOT.format(module=_MODULE, paths=paths, folder=str(folder))], record.root(file)
    )
    if not (folder / ANSWER).exists():
        raise _failed(record, without_traceback(said)[-_TAIL:])
    answer = json.loads((folder / ANSWER).read_text(encoding="utf-8"))
    if not (folder / RECORD).exists():
        report = Report.from_json(json.dumps(answer["report"]))
        found = report.problems[0] if report.problems else None
        raise _failed(record, f"{found.id}: {found.what}" if found else f"its verdict is {report.verdict.value}")
    return Replay(
        record_file.read(folder / RECORD),
        {name: Path(path) for name, path in answer["files"].items()},
    )


def _output(words: list[str], folder: Path) -> str:
    """Runs a program in a folder, and returns what it says."""
    try:
        done = children.HERE.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        return str(error)
    return done.stdout.decode(errors="replace").strip() or children.cause_of_end(done.returncode)


def _failed(record: Record, why: str) -> Exception:
    return problem(
        "record/replay-failed",
        "the command of the record could not be run again",
        where=f"onnxsmith {' '.join(record.command)}",
        why=why,
        fix="add --no-replay to compare only the files; or, if you trust whoever wrote the record, run this command "
        "yourself to see why",
    )
