"""Finds the line of the user's code that called onnxsmith."""

from __future__ import annotations

import sys
from pathlib import Path

import onnxsmith

_OWN = str(Path(onnxsmith.__file__).parent)


def user_line() -> str:
    """Returns `file:line` of the innermost caller outside onnxsmith. A file inside the current folder gets a relative
    path."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_OWN) and frame.f_back is not None:
        frame = frame.f_back
    file = Path(frame.f_code.co_filename)
    try:
        shown = file.relative_to(Path.cwd()) if file.is_absolute() else file
    except (ValueError, OSError):  # another folder, or the current folder is gone
        shown = file
    return f"{shown}:{frame.f_lineno}"
