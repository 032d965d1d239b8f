"""The answer to the question why a rule did or did not fire at a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Facts, Part


@dataclass(frozen=True)
class Answer(Part):
    """The answer to `--why`, for one rule at one node."""

    title = "Why"

    rule: str
    where: str
    fired: bool
    reason: str

    def blocks(self) -> Iterator[Block]:
        fired = "fired" if self.fired else "did not fire"
        yield Facts((("rule", self.rule), ("at", self.where), (fired, self.reason)))
