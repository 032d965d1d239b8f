"""The kinds of steps that an edit may have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text


@dataclass(frozen=True)
class StepList(Part):
    """Each step's name, its fields, and its description."""

    title = "Steps"

    steps: tuple[tuple[str, str, str], ...]

    def blocks(self) -> Iterator[Block]:
        yield Table(("step", "fields"), tuple((name, fields) for name, fields, _ in self.steps))
        for name, _, text in self.steps:
            yield Text(f"{name}: {text}")
