"""The state that a graph takes as inputs and returns as outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text


@dataclass(frozen=True)
class StatePair:
    """An input of the graph, and the output whose value it gets in the next call. `of` is the tensor of the module;
    `first` describes the input's value in the first call."""

    input: str
    output: str
    of: str
    first: str


@dataclass(frozen=True)
class State(Part):
    """The pairs of inputs and outputs that carry a state from call to call. `metadata` is the key of the file's
    metadata that lists them. `steps` counts the consecutive calls that were compared with the module."""

    title = "State"

    pairs: tuple[StatePair, ...]
    metadata: str
    steps: int = 0

    def blocks(self) -> Iterator[Block]:
        yield Table(
            ("input", "gets in the next call", "of the module", "in the first call"),
            tuple((pair.input, pair.output, pair.of, pair.first) for pair in self.pairs),
        )
        yield Text(f"the file's metadata {self.metadata!r} has these pairs with the values of the first call")
        if self.steps:
            yield Text(f"{self.steps} calls in a row, each with the state that the last one returned, were compared")
