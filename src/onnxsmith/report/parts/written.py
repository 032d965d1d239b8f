"""What was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
