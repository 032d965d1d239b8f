"""What was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.report.base import Block, Facts, Part, Text


@dataclass(frozen=True)
class Written(Part):
    """Files written, the model first, with their sizes in bytes; none, for the reason in `why_not`, when none was."""

    title = "Files"

    files: dict[str, int]
    why_not: str = ""

    def blocks(self) -> Iterator[Block]:
        if not self.files:
            yield Text(f"nothing was written: {self.why_not}")
            return
        yield Facts(tuple((path, f"{size:,} bytes") for path, size in self.files.items()))


def written(files: Iterable[Path]) -> Written:
    """The part for files that are there now; a path inside the current folder is shown relative to it."""
    return Written({_shown(file): file.stat().st_size for file in files})


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
