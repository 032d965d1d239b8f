"""A model in the notation of the specification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Text


@dataclass(frozen=True)
class ModelText(Part):
    """The model as ONNX text, without the values of its initializers."""

    title = "Text"

    text: str

    def blocks(self) -> Iterator[Block]:
        yield Text(self.text, verbatim=True)
