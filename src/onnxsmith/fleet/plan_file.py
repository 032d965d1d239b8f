"""Reads the file of a plan, and says in plain words where it is not TOML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem

EXAMPLE = 'a plan starts with: models = ["models/*.onnx"], then steps = ["simplify", "check"]'
_PLACE = re.compile(r"(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.DOTALL)
"""A message of tomllib, with the place at its end."""
_PLAIN = {
    "Unclosed array": "a list is not closed: write a comma after each entry, and ] after the last entry",
    "Unclosed inline table": "a table is not closed: write a comma after each entry, and } after the last entry",
    "Expected ']' at the end of a table": "the name of a table is not closed: write ] after the name",
    "Invalid statement": "a line has to be a key with a value, or the name of a table in [ ]",
    "Unterminated string": "a text in three quotation marks is not closed",
    "Expected \"'''\"": "a text in three quotation marks is not closed",
    'Expected \'"""\'': "a text in three quotation marks is not closed",
    "Invalid value": "a value is missing, or is a text without quotation marks",
    "Expected '=' after a key in a key/value pair": "a key has no = after it",
    "Cannot overwrite a value": "a key appears twice",
    "Expected newline or end of document after a statement": "there is text after the end of a value",
}
"""Maps messages of tomllib to what they mean for a plan."""

_OPEN = ("Illegal character '\\n'", 'Expected "\'"')
"""Messages of tomllib for a text that has no quotation mark at its end."""


def load(file: Path) -> tuple[str, dict[str, Any]]:
    """Returns the text of the file, and its content.

    Raises:
        OnnxsmithError: `fleet/plan-file` if the file cannot be read or is not TOML.
    """
    try:
        text = user_files.read_utf8(file)
    except OSError as error:
        why, fix = error.strerror or str(error), "give the path of the plan"
        raise problem("fleet/plan-file", "the plan cannot be read", where=str(file), why=why, fix=fix) from error
    except UnicodeDecodeError as error:
        why, fix = str(error), "save the plan as text in UTF-8"
        raise problem("fleet/plan-file", "the plan is not TOML", where=str(file), why=why, fix=fix) from error
    try:
        return text, user_files.parse_toml(text)
    except ValueError as error:
        raise _not_toml(file, text.split("\n"), str(error)) from error


def _not_toml(file: Path, lines: Sequence[str], message: str) -> OnnxsmithError:
    match = _PLACE.fullmatch(message)
    what = match["what"] if match is not None else message
    line = int(match["line"]) if match is not None and match["line"] else len("\n".join(lines).rstrip().split("\n"))
    column = int(match["column"]) if match is not None and match["column"] else len(lines[line - 1]) + 1
    why = next((plain for start, plain in _PLAIN.items() if what.startswith(start)), what)
    opened = open_quote(lines[line - 1], ends_at="#") if what in _OPEN else None
    if opened is not None:
        column = opened + 1
        why = "the text that begins there has no quotation mark at its end"
    return problem(
        "fleet/plan-file",
        "the plan is not TOML",
        where=f"{file}, line {line}, column {column}",
        why=why,
        fix=f"correct that place; {EXAMPLE}",
    )


def open_quote(text: str, *, ends_at: str = "") -> int | None:
    """Returns the index of the quotation mark that opens a quoted text and has none that closes it; None if each is
    closed. Behind the character `ends_at`, outside of quotation marks, nothing counts."""
    opened, number = None, 0
    while number < len(text):
        character = text[number]
        if opened is None:
            if character == ends_at:
                return None
            opened = number if character in "'\"" else None
        elif character == text[opened]:
            opened = None
        elif character == "\\" and text[opened] == '"':
            number += 1
        number += 1
    return opened


def open_words(verb: str, text: str, place: str, line: str) -> OnnxsmithError:
    """Returns the problem of options that a shell cannot read, because a quotation mark or a character is missing.
    `place` is the file with its line, `line` the text of that line, in which the options may stand."""
    opened = open_quote(text)
    if opened is None:
        return problem(
            "fleet/plan",
            f"the options of {verb} end with a backslash",
            where=place,
            why="a backslash must be followed by a character",
            fix="leave the backslash out",
        )
    start = line.find(text)
    return problem(
        "fleet/plan",
        f"the options of {verb} have a quotation mark that is not closed",
        where=f"{place}, column {start + opened + 1}" if start >= 0 else place,
        why=f"options are read like in a shell, but {text[opened:]} has no {text[opened]} at its end",
        fix=f'close the quotation mark, or write a list of texts: {verb} = ["--dim", "batch=4"]',
    )
