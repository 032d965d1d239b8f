"""Reads and writes a baseline: a small text for people to review, and its data file."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxsmith.base import devices, user_files
from onnxsmith.base.clock import stage
from onnxsmith.base.folders import replacing
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.system import locks
from onnxsmith.base.words import in_place_of, pasted, pasted_words
from onnxsmith.gate.baselines import data_file
from onnxsmith.gate.baselines.baseline_text import FORMAT, edited, sealed, text
from onnxsmith.gate.baselines.data_file import Content
from onnxsmith.gate.baselines.entry import Dropped, Entry
from onnxsmith.graph.files.save import disk_problems
from onnxsmith.verification.rounding import is_usable

NAME = "baseline.json"
_UNWRITTEN = "the baseline could not be written"


@dataclass(frozen=True)
class Baseline:
    """A baseline in memory. Models are named relative to its folder. `edited` are the models whose entries were changed
    by hand. `was` is the text that was read, None for a new file."""

    path: Path
    entries: dict[str, Entry]
    content: Content
    dropped: list[Dropped] = field(default_factory=list)
    edited: Collection[str] = frozenset()
    was: str | None = None

    def name_of(self, model: str | Path) -> str:
        """Returns the name that a model file has in this baseline."""
        return name_of(self.path, model)

    def file_of(self, name: str) -> Path:
        """Returns the path of a model."""
        file = self.path.parent / name
        return Path(os.path.relpath(os.path.realpath(file))) if ".." in file.parts else file

    def entry(self, model: str | Path) -> Entry:
        """Returns what is recorded of a model file.

        Raises:
            OnnxsmithError: `gate/not-in-baseline`.
        """
        name = self.name_of(model)
        if name in self.entries:
            return self.entries[name]
        record = f"record it: `{self.command('record', model)}`"
        raise problem(
            "gate/not-in-baseline",
            f"the baseline has no model {name!r}",
            where=str(self.path),
            why="models are named relative to the folder of the baseline",
            fix=record
            if Path(model).exists() or not self.entries
            else f"{in_place_of(name, list(self.entries))}; or {record}",
        )

    def refuse_edited(self, model: str | Path) -> None:
        """Raises if the entry of a model was changed by hand.

        Raises:
            OnnxsmithError: `gate/entry-changed`.
        """
        name = self.name_of(model)
        if name in self.edited:
            untimed = "" if self.entries[name].times is not None else " --no-time"
            raise problem(
                "gate/entry-changed",
                f"the entry of {name} was changed by hand",
                where=str(self.path),
                why="the digest of the entry does not match its content, so the recorded results cannot be trusted",
                fix=f"record the model again, with a reason: `{self.command('accept', model)} --reason "
                f'"why"{untimed}`; or restore {self.path.name} from version control',
            )

    def command(self, action: str, model: str | Path) -> str:
        """Returns the command line of an action on a model."""
        return pasted_words(["onnxsmith", "baseline", action, str(model), "-o", str(self.path)])


def name_of(path: Path, model: str | Path) -> str:
    """Returns the name of a model file relative to the folder of a baseline at `path`."""
    folder = os.path.realpath(path.absolute().parent)
    file = Path(model).absolute()
    real = Path(os.path.realpath(file.parent)) / file.name
    return Path(os.path.relpath(real, folder)).as_posix()


def read(path: Path, models: Sequence[str | Path] = ()) -> Baseline:
    """Reads a baseline with its data file. `models` are those that the caller has, for the fix of a missing baseline.

    Raises:
        OnnxsmithError: `gate/no-baseline`, `gate/baseline-unreadable`, `gate/baseline-newer`, `gate/baseline-data`.
    """
    was = _text(path, models)
    try:
        return _read(path, was)
    except OnnxsmithError:
        if _text(path, models) == was:
            raise
        return read(path, models)  # another process wrote both files between the two looks


def _read(path: Path, was: str) -> Baseline:
    data = _data(path, was)
    content = data_file.read(data_file.beside(path), set(_files(data.models.values())))
    return Baseline(path, data.models, content, data.dropped, edited(data.models), was)


@dataclass(frozen=True)
class _Data:
    """Holds the text file as it is read."""

    format: int
    models: dict[str, Entry]
    dropped: list[Dropped] = field(default_factory=list)


def _text(path: Path, models: Sequence[str | Path]) -> str:
    try:
        return user_files.read_utf8(path)
    except FileNotFoundError as error:
        raise problem(
            "gate/no-baseline",
            "there is no baseline",
            where=str(path),
            fix=f"record a baseline: `{_recording(path, models)}`; or give the path of an existing baseline",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error


def _recording(path: Path, models: Sequence[str | Path]) -> str:
    named = pasted_words(models) or "MODEL"
    return f"onnxsmith baseline record {named} -o {pasted(path)}"


def _data(path: Path, written: str) -> _Data:
    from pydantic import TypeAdapter  # slow to import

    try:
        data = user_files.parse_json(written)
        found = data["format"]
        if type(found) is int and found > FORMAT:
            raise problem(
                "gate/baseline-newer",
                f"the baseline has format {found}, but this version reads {FORMAT}",
                where=str(path),
                why="a later version of onnxsmith wrote it",
                fix="install that version: `pip install --upgrade onnxsmith`",
            )
        if type(found) is not int or found != FORMAT:
            raise ValueError(f"format {found!r}, this version reads {FORMAT}")
        read_data = TypeAdapter(_Data).validate_python(data)
        _refuse_unusable_tolerances(read_data.models)
        return read_data
    except (ValueError, KeyError, TypeError, RecursionError) as error:  # pydantic's is a ValueError
        raise _unreadable(path, _mistake(error)) from error


def _refuse_unusable_tolerances(entries: Mapping[str, Entry]) -> None:
    """Raises ValueError for a tolerance with which every number passes. JSON of Python has NaN and infinity."""
    for name, entry in entries.items():
        outputs = [one.tolerance for case in entry.cases for one in case.outputs.values()]
        for tolerance in (entry.tolerance, *outputs):
            if tolerance is not None and not is_usable(tolerance):
                raise ValueError(f"models.{name}: a tolerance of {tolerance:g}")


def _mistake(error: Exception) -> str:
    found = getattr(error, "errors", None)
    if callable(found):  # pydantic's
        first = found()[0]
        return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
    if isinstance(error, json.JSONDecodeError):
        return f"the file is not JSON, from line {error.lineno} on"
    return f"the field {error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _unreadable(path: Path, why: str) -> OnnxsmithError:
    return problem(
        "gate/baseline-unreadable",
        "this is not a baseline that this version can read",
        where=str(path),
        why=why,
        fix="restore the file from its source, such as the last commit; or remove the file and record the models again",
    )


def _files(entries: Iterable[Entry]) -> Iterator[str]:
    """Yields the entries of the data file that a baseline needs."""
    for entry in entries:
        if entry.outline:
            yield entry.outline
        for case in entry.cases:
            for value in (*case.inputs.values(), *(one.value for one in case.outputs.values())):
                yield from _files_of(value)


def _files_of(value: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value.get("file"), str):
        yield value["file"]
    items = value.get("items")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            yield from _files_of(item)


def refuse_unwritable(path: Path) -> None:
    """Raises if the files of a baseline cannot be replaced. Called before anything is measured: a rename would replace
    a file without the permission to write it.

    Raises:
        OnnxsmithError: `save/no-folder`, `save/not-a-file`, `gate/read-only`.
    """
    refuse_missing(path.absolute().parent)
    for file in (path, data_file.beside(path)):
        devices.refuse(file, streams=False)
        if file.is_file() and not file.stat().st_mode & stat.S_IWUSR:
            raise problem(
                "gate/read-only",
                "the baseline may not be written",
                where=str(file),
                why="the file is read-only, so somebody may have protected it",
                fix=f"`chmod u+w {pasted(file)}`; or write another baseline: -o {_other(path)}",
            )


def _other(path: Path) -> str:
    return pasted(path.with_name(f"{path.stem}_2{path.suffix}"))


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Lets no other process write the baseline at `path` while the block runs: the block reads what it writes over.
    Waits for a process that is at it.

    Raises:
        OnnxsmithError: `save/…`.
    """
    real = Path(os.path.realpath(path))
    with ExitStack() as stack:
        with stage("wait"), disk_problems(path, _UNWRITTEN):
            stack.enter_context(locks.HERE.waiting(real.with_name(f".{real.name}.lock")))
        yield


def write(baseline: Baseline) -> list[Path]:
    """Writes both files, and returns their paths. At every moment the text has its data: the data file first gets the
    new entries, then the text is replaced, then entries that nothing needs are removed. Entries without a digest get
    one, unless they were `edited`.

    Raises:
        OnnxsmithError: `gate/baseline-changed` if the text is no longer the one that was read; `save/…`.
    """
    path, data = baseline.path, data_file.beside(baseline.path)
    entries = {
        name: one if one.digest or name in baseline.edited else sealed(one) for name, one in baseline.entries.items()
    }
    needed = Content()
    needed.add(baseline.content, set(_files(entries.values())))
    with disk_problems(path, _UNWRITTEN):
        _refuse_overwriting(baseline)
        data_file.write(data, baseline.content)
        with replacing(path) as aside:
            aside.write_bytes(text(entries, baseline.dropped).encode())
        if needed.held.keys() != baseline.content.held.keys():
            data_file.write(data, needed)
    return [path, data]


def _refuse_overwriting(baseline: Baseline) -> None:
    """Raises if an editor or another program wrote the text since it was read. Raises OSError, too."""
    path = baseline.path
    now = user_files.read_bytes(path).decode(errors="replace") if path.is_file() else None
    if now != baseline.was:
        raise problem(
            "gate/baseline-changed",
            "the baseline was changed while models were measured",
            where=str(path),
            why="another program wrote the file after this command had read it, so nothing was written",
            fix="run the command again, so that it reads the new state of the baseline",
        )
