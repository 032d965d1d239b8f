"""Tells which step of a cell the parts after this one belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, facts


@dataclass(frozen=True)
class StepReport(Part):
    """The head of the report of one step: its parts come after it. `number` counts the steps from 1."""

    title = "Report of a step"

    number: int
    verb: str
    verdict: str
    headline: str
    version: str

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("step", f"{self.number}, {self.verb}"),
                ("verdict", self.verdict),
                ("headline", self.headline),
                ("onnxsmith", self.version),
            ]
        )
