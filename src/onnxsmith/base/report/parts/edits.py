"""The steps of an edit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text


@dataclass(frozen=True)
class Edits(Part):
    """The effect of each step, in order. `changed` are the outputs whose values the steps change on purpose, `new` the
    outputs that the original lacks. Outputs of both kinds were run, but not compared."""

    title = "Edits"

    steps: tuple[tuple[str, str], ...]
    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield Table(("", "step", "done"), tuple((str(i), *one) for i, one in enumerate(self.steps, 1)), right=(0,))
        if self.changed:
            yield Text(f"changed on purpose, so not compared with the original: {', '.join(self.changed)}")
        if self.new:
            yield Text(f"new outputs: {', '.join(self.new)}")
        for note in self.notes:
            yield Text(note)
