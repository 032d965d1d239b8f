"""The time of each stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table


@dataclass(frozen=True)
class Timing(Part):
    """Seconds of wall time by stage, in the order in which the stages began."""

    title = "Time"

    seconds: dict[str, float]

    def blocks(self) -> Iterator[Block]:
        total = sum(self.seconds.values())
        rows = [
            (name, f"{value:.2f} s", f"{value / total:.0%}" if total else "") for name, value in self.seconds.items()
        ]
        yield Table(("stage", "time", "share"), (*rows, ("all", f"{total:.2f} s", "")), right=(1, 2))
