"""Writes lines to a file, whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnxsmith.base import folders
from onnxsmith.graph.files.save import disk_problems


def write(path: str | Path, lines: Sequence[str]) -> None:
    """Writes each text as a line.

    Raises:
        OnnxsmithError: `save/failed`.
    """
    with disk_problems(Path(path)), folders.replacing(Path(path)) as aside:
        aside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
