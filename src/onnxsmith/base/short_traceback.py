"""Shortens a traceback to the lines of the user that led into this package, or to its last line."""

from __future__ import annotations

import itertools
import os
import traceback
from pathlib import Path

_PACKAGE = f"{Path(__file__).parent.parent}{os.sep}"
_IPYTHON = f"{os.sep}IPython{os.sep}"
_HEAD = "Traceback (most recent call last)"
_MOST = 5
"""Limits the lines, of which the last ones are shown. A choice."""


def user_lines(error: BaseException) -> list[str]:
    """Returns a text for each line of the user: `line 2 of the cell: simplify("m.onnx")`. The code of a cell is in no
    file."""
    frames = itertools.takewhile(
        lambda frame: not frame.filename.startswith(_PACKAGE), traceback.extract_tb(error.__traceback__)
    )
    own = [frame for frame in frames if _IPYTHON not in frame.filename]
    return [f"{_place(frame)}: {frame.line}" for frame in own[-_MOST:]]


def without_traceback(said: str) -> str:
    """Returns the output of a program; of a Python program that failed, only the last line, which names the error."""
    return said.strip().splitlines()[-1] if _HEAD in said else said.strip()


def _place(frame: traceback.FrameSummary) -> str:
    is_file = Path(frame.filename).is_file()
    return f"{frame.filename}:{frame.lineno}" if is_file else f"line {frame.lineno} of the cell"
