"""Looks at files before they are committed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnxsmith.base import rooms
from onnxsmith.base.clock import Clock
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.guarded_files import FileFindings, GuardedFiles
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import SIZE_UNITS, byte_count, first_few, several
from onnxsmith.gate.guarding import guarded_file
from onnxsmith.gate.guarding.checks.base import Check
from onnxsmith.graph.files.load import near_files
from onnxsmith.graph.model_identity import identifies

MAX_SIZE = "100MB"
"""Limits the size of a file. GitHub refuses files above 100 MiB."""
_SHOWN = 3
"""Limits the files that a headline names. A choice."""


@identifies("files")
def guard(files: Sequence[str | Path], *, max_size: str = MAX_SIZE, simplified: bool = False) -> Report:
    """Looks whether files may be committed: models, their data, and weights. Reads the files, and runs no model.

    The verdict is `different` if something is wrong with a file. `max_size` limits the bytes of each file, such as
    `100MB` (units of 1000) or `100MiB` (of 1024); 0 is no limit. With `simplified`, models also have to be simplified.

    Raises:
        OnnxsmithError: `guard/no-file` without files, or for a folder; `model/not-found`; `guard/bad-size`.
    """
    with Clock() as clock:
        most = _most(max_size)
        paths = _existing(files)
        checks = rooms.members("onnxsmith.gate.guarding.checks", Check)
        rows, problems = [], []
        for path in paths:
            file = guarded_file.read(path, most=most, is_simplified=simplified)
            found = [one for check in checks.values() for one in check.problems(file)]
            problems += found
            rows.append(FileFindings(str(path), file.kind, file.bytes, tuple(one.id for one in found)))
        bad = [one for one in rows if one.findings]
        shown = first_few([f"{one.path}: {', '.join(dict.fromkeys(one.findings))}" for one in bad], _SHOWN, "; ")
        return Report(
            "guard",
            Verdict.DIFFERENT if bad else Verdict.DONE,
            (GuardedFiles(tuple(rows)), Timing(clock.passed())),
            tuple(problems),
            headline=f"{len(bad)} of {several(len(rows), 'file')} NOT FIT to be committed: {shown}"
            if bad
            else f"{several(len(rows), 'file')} fit to be committed",
        )


def _most(text: str) -> int:
    found = byte_count(text)
    if found is None:
        raise problem(
            "guard/bad-size",
            f"{text!r} is not a size",
            where="--max-size",
            why=f"a size is a number with one of the units {SIZE_UNITS}; 0 allows any size",
            fix="write --max-size 100MB",
        )
    return found


def _existing(files: Sequence[str | Path]) -> list[Path]:
    """Returns each file once."""
    if not files:
        raise problem("guard/no-file", "no file was given", fix="name the files: `onnxsmith guard model.onnx`")
    paths = [Path(one) for one in dict.fromkeys(map(str, files))]
    for path in paths:
        if path.is_dir():
            raise problem(
                "guard/no-file",
                "this is a folder, not a file",
                where=str(path),
                fix=f"name the files in the folder: {path}/*.onnx",
            )
        if not path.exists():
            raise problem(
                "model/not-found",
                "there is no such file",
                where=str(path),
                fix=near_files(path) or f"check the path; relative paths start at {Path.cwd()}",
            )
        if not path.is_file():
            raise problem(
                "model/not-a-file",
                "this is a pipe or a device, and not a file",
                where=str(path),
                fix="give the path of a file",
            )
    return paths
