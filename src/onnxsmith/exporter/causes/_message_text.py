"""Reads source lines and sentences from messages."""

from __future__ import annotations

import re
from pathlib import Path

import onnxsmith

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|(?<=\s)\[\d{1,2}m|(?<=\S)\[0m")
_CAUSED = re.compile(r"^Caused by: \((\S+\.py:\d+) in ", re.MULTILINE)
"""Matches the line of forward that torch.export names in its message."""
_OWN = ("onnxsmith/exporter/", "onnxsmith/base/seams/")
"""Names the files through which each traced call passes. Only parts of their paths can be compared, because torch cuts
the start of a path."""
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_CODE = re.compile(r'File "[^"]+", line \d+, in [^\n]+\n\s*([^\n]+)')
_NOT_THE_USERS = ("site-packages", "dist-packages", "<", str(Path(onnxsmith.__file__).parent))


def plain(text: str) -> str:
    """Removes a terminal's control codes, also where a copy lost their first character."""
    return _COLOUR.sub("", text)


def line_in(text: str) -> str:
    """Returns `file:line` of the innermost frame of the user's code in the text, or empty if there is none."""
    caused = [
        line
        for line in _CAUSED.findall(text)
        if not line.startswith(("_", "torch/")) and not any(part in line for part in _OWN)
    ]
    if caused:
        return str(caused[-1])
    own = [f"{file}:{line}" for file, line in _FRAME.findall(text) if not any(part in file for part in _NOT_THE_USERS)]
    return own[-1] if own else ""


def code_in(text: str) -> str:
    """Returns the source line that the text shows under its innermost frame, or empty if there is none."""
    shown = _CODE.findall(text)
    return str(shown[-1]).strip() if shown else ""


def sentence(text: str, limit: int = 500) -> str:
    """Joins the first three lines, up to `limit` characters."""
    lines = [line.strip() for line in plain(text).splitlines() if line.strip()]
    return " ".join(lines[:3])[:limit]
