"""Says where a cell keeps the files that its steps write, and which of them are still there."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

_UNSAFE = re.compile(r"[^\w.=+-]+")
_LONGEST = 60
"""Characters of a name that go into the name of a folder. A choice: a name has at most 255 bytes."""
_FILE = re.compile(r"\d+-[\w -]+\.onnx")
"""The name of a kept file: the number of its step, and the verb."""
_DEPTH = 4
"""Counts the parts of a kept file's path: model, setting, environment, file."""


def folder_of(place: tuple[str, str, str], keep: Path) -> Path:
    """Returns the folder for the files of a cell, in the folder `keep` of its plan."""
    return keep.joinpath(*map(_folder_name, place))


def name_of(number: int, verb: str) -> str:
    """Returns the name of the file that a step writes."""
    return f"{number}-{verb}.onnx"


def lies_in(file: Path, keep: Path) -> bool:
    """Whether a run kept the file in the folder `keep`, so that it is no model of the plan."""
    if not file.resolve().is_relative_to(keep.resolve()):
        return False
    parts = file.resolve().relative_to(keep.resolve()).parts
    return len(parts) == _DEPTH and _FILE.fullmatch(parts[-1]) is not None


def are_there(files: Mapping[str, str], folder: Path) -> bool:
    """Whether the kept files of a row are still there."""
    return all((folder / name).is_file() for name in files)


def _folder_name(name: str) -> str:
    """Returns a name for a folder. Different names give different folders: a changed name ends with its digest."""
    safe = _UNSAFE.sub("_", name)
    if safe == name and safe.strip(".") and len(safe) <= _LONGEST:
        return safe
    return f"{safe[:_LONGEST]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"
