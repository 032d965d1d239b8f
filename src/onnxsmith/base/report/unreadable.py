"""Says why a text is not a report that this version reads."""

from __future__ import annotations

import json
from typing import Any

from onnxsmith._version import __version__
from onnxsmith.base.problem import OnnxsmithError, problem

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
        return _STRANGER, f"it is JSON, but {_KINDS.get(type(data), 'not an object')}, not a report"
    if "keep" in data and len(absent) == len(_FIELDS):
        return _STRANGER, "it is a list of nodes to keep, which bisect or quantize wrote beside its report"
    if absent:
        return _STRANGER, f"it is JSON without the fields of a report: {', '.join(absent)}"
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
    return str(error) if type(error) is ValueError else "a field has not the form that this version reads"


def _written_by(data: dict[str, Any]) -> str:
    """Says which version wrote a report, if it was another one."""
    version = data.get("version")
    if not isinstance(version, str) or version == __version__:
        return ""
    return f"; onnxsmith {version} wrote it, this is {__version__}"
