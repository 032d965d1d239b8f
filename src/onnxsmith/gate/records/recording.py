"""Makes the record of a command: hashes what it will read, lets it run, and hashes what it wrote."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report, recorded_fields
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.gate.records import circumstances, named_files
from onnxsmith.gate.records.record_file import Record


@dataclass(frozen=True)
class Plan:
    """What the command line says before the command runs: its words, the words that name input files, the paths of its
    outputs, the models that it judges without writing them, and its seed. `names` maps a path to the name that the
    record gives it, if outputs go to another place."""

    words: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    judged: tuple[str, ...]
    seed: int | None
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, text: str) -> str:
        """Returns a text with the names of the record in place of other paths."""
        for path, name in self.names.items():
            text = text.replace(path, name)
        return text


class Recording:
    """A command that is being recorded. Making it hashes the input files, because the command may replace them.

    Raises:
        OnnxsmithError: `record/file-unreadable`.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        outputs = [Path(one) for one in plan.writes]
        with stage("hash"):
            files = named_files.in_words(plan.reads, outputs=outputs)
            self._states = {file: _state(file) for file in files}
            self._parents = named_files.digests(files)
        self._before = {file: _state(file) for file in outputs}
        self._modules = set(sys.modules)

    def record(self, report: Report, folder: str) -> Record | Problem:
        """Returns the record of the command that ended with a report, or the problem that prevents one. `folder` is the
        current folder relative to that of the record.

        Raises:
            OnnxsmithError: `record/file-unreadable`.
        """
        if report.verdict is Verdict.FAILED:
            return not_written("the command failed")
        with stage("hash"):
            files = list(self._written(report))
            changed = [file for file in named_files.without(self._states, files) if _state(file) != self._states[file]]
            if changed:
                return not_written(f"{changed[0]} changed while the command ran")
            subjects = named_files.digests([*files, *named_files.in_words(self._plan.judged)])
            parents = named_files.digests(self._imported()) | self._parents
        if not subjects:
            return not_written(f"the command wrote nothing, because its verdict is {report.verdict.value}")
        compared = tuple(recorded_fields(part) for part in report.parts if part.recorded)
        plan = self._plan
        return Record(
            subjects={plan.name(name): digest for name, digest in subjects.items()},
            parents=parents,
            command=plan.words,
            folder=folder,
            seed=plan.seed,
            versions=circumstances.versions(plan.words),
            platform=circumstances.here(),
            verdict=report.verdict.value,
            compared=_renamed(compared, plan),
        )

    def _written(self, report: Report) -> Iterator[Path]:
        """Yields the files that the command wrote, each once: an output under the path that was typed, and the files
        that the report names."""
        typed = [file for file, before in self._before.items() if file.is_file() and _state(file) != before]
        named = [Path(name) for part in report.parts if isinstance(part, Written) for name in part.files]
        seen: set[str] = set()
        for file in (one for path in (*typed, *named) if path.is_file() for one in named_files.whole(path)):
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                yield file

    def _imported(self) -> Iterator[Path]:
        """Yields the Python files below the current folder, or beside a file that the command line names, that the
        command imported."""
        here = Path.cwd().resolve()
        roots = [here, *(Path(one).resolve().parent for one in self._parents if one.endswith(".py"))]
        known = {Path(one).resolve() for one in self._parents}
        for name in sorted(set(sys.modules) - self._modules):
            file = Path(str(getattr(sys.modules[name], "__file__", ""))).resolve()
            is_own = any(map(file.is_relative_to, roots)) and not any(map(file.is_relative_to, _INSTALLED))
            if file.suffix == ".py" and is_own and file not in known and file.is_file():
                known.add(file)
                yield file.relative_to(here) if file.is_relative_to(here) else file


_INSTALLED = tuple(
    Path(one).resolve()
    for one in (
        *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")},
        site.getusersitepackages(),
        str(Path(__file__).parents[2]),
    )
)
"""Folders whose modules belong to a package with a version, not to the user."""


def _state(file: Path) -> tuple[int, ...] | None:
    """Returns numbers that change if the file is written; None if there is none."""
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size


def _renamed(data: Any, plan: Plan) -> Any:
    if isinstance(data, str):
        return plan.name(data)
    if isinstance(data, Mapping):
        return {key: _renamed(value, plan) for key, value in data.items()}
    if isinstance(data, Sequence):
        return tuple(_renamed(one, plan) for one in data)
    return data


def not_written(why: str) -> Problem:
    """Returns the problem of a command that leaves no record."""
    return Problem(
        "record/not-written",
        "no record was written",
        why=why,
        fix="apply the fix of the first problem, and run the command again",
    )
