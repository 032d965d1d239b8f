"""The row of a cell: what came out, as plain data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self, TypeVar

from onnxsmith.base import user_files
from onnxsmith.base.printable import one_line

FORMAT = 1
_T = TypeVar("_T")
_KEY = re.compile("[0-9a-f]+")
"""Matches the key of a row. It becomes the name of a file in a folder, and a store may come from somebody else."""


class Outcome(StrEnum):
    """How a cell ended: a verdict of its steps, what a verdict leaves open, or how a process ended that gave none."""

    DONE = "done"
    CANNOT_TELL = "cannot-tell"
    REFUSED = "refused"
    """A target does not take the model. No number differs, which would be worse."""
    DIFFERENT = "different"
    FAILED = "failed"
    MEMORY = "memory"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    LOST = "lost"
    """Nothing was learnt about the model: each worker that ran it alone died, or it could not be prepared."""

    @property
    def harm(self) -> int:
        """Returns the place of the outcome from good to bad."""
        return list(Outcome).index(self)


UNDECIDED = (Outcome.LOST,)
"""Outcomes that say nothing about the model: such a cell is computed again by the next run."""


@dataclass(frozen=True)
class StepResult:
    """How a step ended. `command` is what was run, with paths relative to the plan's folder. `report` is the report as
    plain data; None if the process gave none. `said` is the end of its standard error."""

    verb: str
    command: tuple[str, ...]
    outcome: Outcome
    headline: str
    seconds: float
    problem: str = ""
    report: dict[str, Any] | None = None
    said: str = ""


@dataclass(frozen=True)
class Row:
    """The result of a cell. `headline` and `problem` (an id, or "") are those of the worst step. `files` are kept files
    with their SHA-256. `at` is the time of the end in UTC, ISO 8601; `machine` the name of the host."""

    key: str
    model: str
    setting: str
    environment: str
    outcome: Outcome
    headline: str
    problem: str
    seconds: float
    at: str
    machine: str
    versions: dict[str, str]
    files: dict[str, str]
    steps: tuple[StepResult, ...]

    def to_json(self) -> str:
        """Returns the row as one line of JSON in ASCII: a file's name may be no text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote.

        Raises:
            ValueError: the text is no row, or another version wrote it.
        """
        try:
            data = user_files.parse_json(text)
            if data.pop("format") != FORMAT:
                raise ValueError("another version of onnxsmith wrote it")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error
        row = typed(cls, data)
        refuse_key(row.key)
        return row


def refuse_key(key: str) -> None:
    """Raises a ValueError for a text that is no key of a row."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{one_line(key)!r} is no key of a row")


@dataclass(frozen=True)
class Summary:
    """What a table shows of a row."""

    key: str
    outcome: Outcome
    headline: str
    problem: str
    seconds: float

    @classmethod
    def of(cls, row: Row) -> Self:
        """Returns the summary of a row."""
        return cls(row.key, row.outcome, row.headline, row.problem, row.seconds)

    @classmethod
    def read(cls, values: Any) -> Self:
        """Returns the summary whose fields a store has in this order.

        Raises:
            ValueError: these are no fields of a summary.
        """
        try:
            return typed(cls, dict(zip(cls.__dataclass_fields__, values, strict=True)))
        except TypeError as error:
            raise ValueError(str(error)) from error


def typed(kind: type[_T], data: Mapping[str, Any]) -> _T:
    """Returns a dataclass whose fields come from a file.

    Raises:
        ValueError: a field is missing, or has another type than it is declared with.
    """
    from pydantic import ValidationError  # slow to import

    try:
        found: _T = _reader(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return found


_READERS: dict[type, Any] = {}


def _reader(kind: type[_T]) -> Any:
    if kind not in _READERS:
        from pydantic import TypeAdapter

        _READERS[kind] = TypeAdapter(kind)
    return _READERS[kind]
