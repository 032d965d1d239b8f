"""The files that were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.base.report.base import Block, Facts, Part, Text


@dataclass(frozen=True)
class Written(Part):
    """The written files with their sizes in bytes, the model first. If nothing was written, `why_not` says why."""

    title = "Files"

    files: dict[str, int]
    why_not: str = ""

    def blocks(self) -> Iterator[Block]:
        if not self.files:
            yield Text(f"nothing was written: {self.why_not}")
            return
        yield Facts(tuple((path, f"{size:,} bytes") for path, size in self.files.items()))


def written(files: Iterable[Path]) -> Written:
    """Makes the part for existing files. Paths inside the current folder are shown relative to it."""
    return Written({_shown(file): file.stat().st_size for file in files})


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
