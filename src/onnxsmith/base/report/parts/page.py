"""A page of documentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Text


@dataclass(frozen=True)
class Page(Part):
    """The page of a rule or a problem, as Markdown."""

    title = "Page"

    id: str
    text: str

    def blocks(self) -> Iterator[Block]:
        yield Text(self.text, verbatim=True)
