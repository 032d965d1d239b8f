"""A report and its parts.

A command returns a `Report`: a verdict, parts, problems. A part is a frozen dataclass of plain data. `--json` prints
its fields. Its `blocks` say how to show it. Renderers know blocks only, so that a new kind of part is one new class and
no renderer changes. Its `line` is the part in one line, and its `card` the values beside the verdict: a
terminal shows these first.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from onnxsmith._version import __version__
from onnxsmith.base import rooms, user_files
from onnxsmith.base.printable import DATA, json_printable, limited
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.case import Case
from onnxsmith.base.report.verdict import Verdict

if TYPE_CHECKING:
    from pydantic import TypeAdapter


SCHEMA_VERSION = 1
"""Grows when an older reader would misread the new form; `from_json` refuses other versions."""


class Tone(StrEnum):
    """The importance of a line; a renderer picks the colour."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Facts:
    """Labelled values, one per line."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Places:
    """The links of a column: each row names a `node`, a `tensor` or a `module`, or "" for no link. A page links these
    names to the view of the model. With two models, a name in both links to the second model, an `old node` to the
    first."""

    column: int
    kind: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Bars:
    """Small drawings in the cells of a column, which only pages show. A row has the length of a bar as a share of the
    column's width, or five shares of a box: an end, a quartile, the median, a quartile, an end; or none. A bar beyond 1
    is cut, and drawn as a bad one. `says` is what the drawings show."""

    column: int
    shares: tuple[tuple[float, ...], ...]
    says: str


@dataclass(frozen=True)
class Table:
    """Rows under headings. `right` are the indices of the columns that hold numbers. `rows_in_terminal` are the indices
    of the rows that a terminal shows, in that order; None means all. A page shows all rows, first in the order of the
    indices `worst_first`, and can sort them by any column. `is_key`: the rows are the point of the part, so a terminal
    shows every one, and shortens the other tables of the part instead. `longest` limits the characters of a text in a
    terminal; 0 for no limit."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    rows_in_terminal: tuple[int, ...] | None = None
    places: tuple[Places, ...] = ()
    worst_first: tuple[int, ...] = ()
    is_key: bool = False
    longest: int = 0
    bars: tuple[Bars, ...] = ()


@dataclass(frozen=True)
class Chart:
    """Curves over `labels` on a logarithmic scale. A curve is a name and its values; None is a gap. Only pages draw
    charts, so the same numbers also stand in a table. `x` and `y` name the axes."""

    title: str
    labels: tuple[str, ...]
    curves: tuple[tuple[str, tuple[float | None, ...]], ...]
    x: str = ""
    y: str = ""


@dataclass(frozen=True)
class Text:
    """A paragraph, or verbatim text if `verbatim` is set. Without -v, a terminal shows the paragraph `shorter` in its
    place, if there is one."""

    text: str
    tone: Tone = Tone.PLAIN
    verbatim: bool = False
    shorter: str = ""


@dataclass(frozen=True)
class Series:
    """A curve of a `Plot`: its name, and the x and y of its points. `low` and `high` are the ends of the error bar at
    each point, if the values have an uncertainty."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plot:
    """Curves over a number. `x` and `y` name the axes with their units; with `logarithmic`, x has a logarithmic scale.
    Only pages draw plots, so a table also gives the important numbers."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    logarithmic: bool = False


@dataclass(frozen=True)
class Intervals:
    """Estimates with their intervals, one above the other: name, low, estimate, high. A line marks the value `at`, so
    that the reader sees which intervals contain it. Only pages draw intervals, so the same numbers also stand in a
    table."""

    title: str
    rows: tuple[tuple[str, float, float, float], ...]
    at: float


Block = Facts | Table | Text | Chart | Plot | Intervals


class Part(ABC):
    """One subject of a report. Subclasses are frozen dataclasses in `base/report/parts/`."""

    title: ClassVar[str]
    recorded: ClassVar[tuple[str, ...]] = ()
    """The fields that a verification record keeps: what was compared, and with which outcome. No times, no machines."""
    is_lossy: ClassVar[bool] = False
    """Whether the result differs from the given model on purpose. `--quiet` then prints the headline, which says what
    it costs."""

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yields the blocks that show the part."""

    def card(self) -> tuple[tuple[str, str], ...]:
        """Returns labelled values that belong to the verdict: against what, how sure, the number that matters."""
        return ()

    def line(self) -> str:
        """Returns the part in one line. "" if its blocks are the point of the report: a terminal then shows them."""
        return ""

    def cases(self) -> Iterator[Case]:
        """Yields the questions about each model with their answers. Without any, the command itself is the question."""
        return iter(())

    def failures(self) -> Iterator[str]:
        """Yields a line for each entry of the part that is a problem: what `--quiet` shows of a report whose command
        itself did not fail."""
        return iter(())

    @classmethod
    def kind(cls) -> str:
        """Returns the part's name in JSON: the name of its module, or of its class if a module holds several parts."""
        return rooms.own_name(cls, Part).replace("-", "_")


_P = TypeVar("_P", bound=Part)


@dataclass(frozen=True)
class Report:
    """The report of a command. `notes` are lines for the reader that are not errors; `headline` is one line. `models`
    are the model files that the command read and wrote; reports of earlier versions have none."""

    command: str
    verdict: Verdict
    parts: tuple[Part, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    headline: str = ""
    version: str = field(default=__version__)
    schema: int = field(default=SCHEMA_VERSION)
    models: tuple[ModelFile, ...] = ()

    def __repr__(self) -> str:
        from onnxsmith.base.report.card import in_short  # a card holds blocks, which this module defines

        return in_short("Report", self)

    def _repr_html_(self) -> str:
        """Returns the report as HTML for a notebook."""
        from onnxsmith.base.report.card import of_report, to_html

        return to_html(of_report(self))

    def part(self, kind: type[_P]) -> _P:
        """Returns the part of that class. Raises LookupError when the report has no such part."""
        for part in self.parts:
            if isinstance(part, kind):
                return part
        raise LookupError(f"the report has no {kind.__name__}")

    def to_json(self, indent: int | None = 2) -> str:
        """Returns the whole report as JSON; `from_json` makes an equal report from it."""
        text = json.dumps(_encodable(self.to_dict()), indent=indent, ensure_ascii=False, allow_nan=False)
        return json_printable(text)

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as plain data."""
        return {
            "schema": self.schema,
            "version": self.version,
            "command": self.command,
            "verdict": self.verdict.value,
            "headline": self.headline,
            "models": [_adapter(ModelFile).dump_python(one, mode="json") for one in self.models],
            "notes": list(self.notes),
            "problems": [_of_problem(one) for one in self.problems],
            "parts": [
                {"kind": part.kind(), **_adapter(type(part)).dump_python(part, mode="json")} for part in self.parts
            ],
        }

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote.

        Raises:
            OnnxsmithError: `report/unreadable` when the text is not a report, or has another schema version.
        """
        data: Any = None
        try:
            data = user_files.parse_json(text)
            if type(data["schema"]) is not int or data["schema"] != SCHEMA_VERSION:
                raise ValueError(f"schema {data['schema']}, this version reads {SCHEMA_VERSION}")
            kinds = _part_kinds()
            parts = []
            for item in data["parts"]:
                kind = item.pop("kind")
                if kind not in kinds:
                    raise ValueError(f"the report has a part of the kind {kind!r}, which this version does not know")
                parts.append(_read(kinds[kind], item))
            return cls(
                command=_read(str, data["command"]),
                verdict=Verdict(data["verdict"]),
                parts=tuple(parts),
                problems=_read(tuple[Problem, ...], data["problems"]),
                notes=_read(tuple[str, ...], data["notes"]),
                headline=_read(str, data["headline"]),
                version=_read(str, data["version"]),
                schema=data["schema"],
                models=_read(tuple[ModelFile, ...], data.get("models", [])),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:  # pydantic's is a ValueError
            raise unreadable(text, data, error) from error


def _of_problem(found: Problem) -> dict[str, Any]:
    """Returns the problem as plain data, with the remedies that follow from its fix."""
    named = {"remedies": [asdict(one) for one in found.remedies]} if found.fix else {}
    return {**_adapter(Problem).dump_python(found, mode="json"), **named}


def recorded_fields(part: Part) -> dict[str, Any]:
    """Returns the kind of a part and the fields that a verification record keeps, as plain data."""
    data = _adapter(type(part)).dump_python(part, mode="json")
    kept: dict[str, Any] = _encodable({name: data[name] for name in part.recorded})
    return {"kind": part.kind(), **kept}


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # slow to import, and only JSON needs it

    return TypeAdapter(kind)


def _read(kind: Any, data: Any) -> Any:
    return _adapter(kind).validate_python(data)


def _encodable(data: Any) -> Any:
    """Replaces NaN and infinities by strings: JSON has no such numbers. Reading turns the strings back. Shortens texts
    beyond all use."""
    if isinstance(data, str):
        return limited(data, DATA)
    if isinstance(data, float) and not math.isfinite(data):
        return str(data)
    if isinstance(data, dict):
        return {limited(key, DATA): _encodable(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_encodable(value) for value in data]
    return data


@cache
def _part_kinds() -> dict[str, type[Part]]:
    found: dict[str, type[Part]] = {}
    for kind in rooms.classes("onnxsmith.base.report.parts", Part).values():
        if kind.kind() in found:
            raise problem(
                "room/clash",
                f"two kinds of report parts are called {kind.kind()!r}",
                where=f"{found[kind.kind()].__module__}, {kind.__module__}",
                fix="rename one of them",
            )
        found[kind.kind()] = kind
    return found


def facts(rows: Iterable[tuple[str, object]]) -> Facts:
    """Makes facts from values of any kind; leaves out rows whose value is None or ""."""
    return Facts(tuple((label, str(value)) for label, value in rows if value is not None and value != ""))


@dataclass(frozen=True)
class DataFile:
    """A data file with weights of a model. The hash covers `covered` of its bytes: only parts of a large file are
    hashed."""

    name: str
    bytes: int
    sha256: str
    covered: int


@dataclass(frozen=True)
class ModelFile:
    """A model file as it was read or written: `role` is `read` or `written`. `sha256` covers all its bytes, but not its
    data files."""

    path: str
    role: str
    bytes: int
    sha256: str
    data: tuple[DataFile, ...] = ()

    def same_graph(self, other: ModelFile) -> bool:
        """Whether the bytes of the model file are equal."""
        return self.sha256 == other.sha256

    def same_weights(self, other: ModelFile) -> bool:
        """Whether the data files are equal, as far as their hashes cover them."""
        return [(one.sha256, one.bytes) for one in self.data] == [(one.sha256, one.bytes) for one in other.data]


_FIELDS = ("schema", "command", "verdict", "parts")
"""Fields that every report has."""
_STRANGER = "this is not an onnxsmith report"
_OTHER = "this is not a report that this version can read"
_KINDS = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number", bool: "a truth value"}


def unreadable(text: str, data: Any, error: Exception) -> OnnxsmithError:
    """Returns `report/unreadable`. `data` is the JSON in the text, None if there is none or it is null."""
    what, why = _said(text, data, error)
    fix = "give the file that a command wrote: onnxsmith check model.onnx --json > report.json"
    if what is _OTHER:
        fix = "write the report again with --json and this version of onnxsmith"
    return problem("report/unreadable", what, why=why, fix=fix)


def _said(text: str, data: Any, error: Exception) -> tuple[str, str]:
    if not text.strip():
        return _STRANGER, "the file is empty: a command that failed before its report leaves such a file"
    if data is None and text.strip() != "null":
        place = f", from line {error.lineno} on" if isinstance(error, json.JSONDecodeError) else ""
        return _STRANGER, f"it is not JSON{place}"
    absent = [name for name in _FIELDS if not isinstance(data, dict) or name not in data]
    if not isinstance(data, dict):
        return _STRANGER, f"the file is JSON, but contains {_KINDS.get(type(data), 'null')} instead of a report"
    if "keep" in data and len(absent) == len(_FIELDS):
        return _STRANGER, "it is a list of nodes to keep, which bisect or quantize wrote beside its report"
    if absent:
        return _STRANGER, f"the file is JSON, but lacks these fields of a report: {', '.join(absent)}"
    return _OTHER, f"{_mistake(error)}{_written_by(data)}"


def _mistake(error: Exception) -> str:
    """Returns the first mistake in a report as a sentence without the words of a library."""
    found = getattr(error, "errors", None)
    if callable(found):  # pydantic's, which is imported only if a report is read
        first = found()[0]
        place = ".".join(str(step) for step in first["loc"]) or "a field"
        title = str(getattr(error, "title", ""))
        return f"{f'{title}: ' if title.isidentifier() else ''}{place}: {first['msg']}"
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    return str(error) if type(error) is ValueError else "a field does not have the form that this version reads"


def _written_by(data: dict[str, Any]) -> str:
    """Says which version wrote a report, if it was another one."""
    version = data.get("version")
    if not isinstance(version, str) or version == __version__:
        return ""
    return f"; onnxsmith {version} wrote it, this is {__version__}"
