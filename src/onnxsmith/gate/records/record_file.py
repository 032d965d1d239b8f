"""The file of a verification record: an in-toto Statement v1 in JSON.

The form is that of https://github.com/in-toto/attestation/tree/main/spec/v1. The text has no time of day, and its keys
are sorted: the same work gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.folders import replacing
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files.save import disk_problems

STATEMENT = "https://in-toto.io/Statement/v1"
"""Is the type of every in-toto statement."""
VERSION = 1
"""Grows when an older reader would misread the predicate."""
_KIND = "https://pypi.org/project/onnxsmith/verification/v"
PREDICATE = f"{_KIND}{VERSION}"
"""Is the type of the predicate: a name with a version, which no program opens."""
Digests = Mapping[str, str]
"""Maps the name of a file to the SHA-256 of all its bytes. A name is a path as it was typed."""


@dataclass(frozen=True)
class Record:
    """What one command did.

    `subjects` are the files that the command wrote, or the model that it judged; `parents` are the files that it read.
    Names are relative to `folder`, the folder in which the command ran; `folder` is relative to that of the record.
    `command` are the words after `onnxsmith`. `versions` maps packages to versions, `platform` has facts about the
    machine. `compared` are the parts of the report that say what was compared, reduced to the fields that do not change
    when the command runs again.
    """

    subjects: Digests
    parents: Digests
    command: tuple[str, ...]
    folder: str
    seed: int | None
    versions: Mapping[str, str]
    platform: Mapping[str, str]
    verdict: str
    compared: tuple[Mapping[str, Any], ...]
    unknown: tuple[str, ...] = ()
    """The fields of the file that this version does not know, and does not check."""

    def root(self, file: Path) -> Path:
        """Returns the folder in which the command ran, for the record in `file`."""
        return file.absolute().parent / self.folder


_PREDICATE = tuple(one.name for one in fields(Record) if one.name not in ("subjects", "unknown"))


def text(record: Record) -> str:
    """Returns the text of the file: sorted and indented JSON."""
    predicate = {name: getattr(record, name) for name in _PREDICATE} | {"parents": _listed(record.parents)}
    statement = {
        "_type": STATEMENT,
        "subject": _listed(record.subjects),
        "predicateType": PREDICATE,
        "predicate": predicate,
    }
    return json.dumps(statement, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _listed(digests: Digests) -> list[dict[str, Any]]:
    return [{"name": name, "digest": {"sha256": digests[name]}} for name in sorted(digests)]


def write(record: Record, file: Path) -> None:
    """Writes the file, all or nothing.

    Raises:
        OnnxsmithError: `save/…`.
    """
    with disk_problems(file, "the record could not be written"), replacing(file) as aside:
        aside.write_bytes(text(record).encode(errors="surrogateescape"))


def read(file: Path) -> Record:
    """Reads the file.

    Raises:
        OnnxsmithError: `record/not-found`, `record/unreadable`, `record/newer`.
    """
    try:
        content = user_files.read_bytes(file).decode(errors="surrogateescape")
    except FileNotFoundError as error:
        raise problem(
            "record/not-found",
            "there is no such record",
            where=str(file),
            why="the option --record of a command writes one",
            fix="check the path; or run the command again with `--record`",
        ) from error
    except OSError as error:
        raise _unreadable(file, f"the file cannot be read: {error.strerror}") from error
    try:
        return _parsed(user_files.parse_json(content), file)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:  # pydantic's is a ValueError
        raise _unreadable(file, _mistake(error)) from error


def is_record(file: Path) -> bool:
    """Whether the file is a record, of any version."""
    try:
        return (
            re.match(re.escape(_KIND), user_files.parse_json(user_files.read_bytes(file))["predicateType"]) is not None
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _parsed(data: Any, file: Path) -> Record:
    from pydantic import TypeAdapter  # slow to import, and only reading needs it

    kind = data["predicateType"]
    if data["_type"] != STATEMENT or not (version := re.fullmatch(re.escape(_KIND) + r"(\d+)", kind)):
        raise ValueError(f"it states {kind!r} as {data['_type']!r}, but is not a verification record of onnxsmith")
    if int(version[1]) > VERSION:
        raise problem(
            "record/newer",
            f"a later version of onnxsmith wrote this record: version {version[1]}, but this version reads {VERSION}",
            where=str(file),
            fix="install that version: `pip install --upgrade onnxsmith`",
        )
    predicate = data["predicate"]
    if int(version[1]) != VERSION or not isinstance(predicate, dict):
        raise ValueError(f"the file has no predicate of version {VERSION}")
    values = {name: predicate[name] for name in _PREDICATE}
    values |= {"parents": _digests(predicate["parents"]), "subjects": _digests(data["subject"])}
    values["unknown"] = tuple(sorted(predicate.keys() - set(_PREDICATE)))
    return TypeAdapter(Record).validate_python(values)


def _digests(listed: Any) -> dict[str, str]:
    found = {one["name"]: one["digest"]["sha256"] for one in listed}
    if len(found) != len(listed):
        raise ValueError("the record names a file twice")
    return found


def _mistake(error: Exception) -> str:
    listed = getattr(error, "errors", None)
    if callable(listed):  # pydantic's
        first = listed()[0]
        return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
    if isinstance(error, json.JSONDecodeError):
        return f"the file is not JSON, from line {error.lineno} on"
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    return str(error) if type(error) is ValueError else "the file does not have the form of an in-toto statement"


def _unreadable(file: Path, why: str) -> OnnxsmithError:
    return problem(
        "record/unreadable",
        "this is not a record that this version can read",
        where=str(file),
        why=why,
        fix="restore the file from its source; or run the command again with `--record`",
    )
