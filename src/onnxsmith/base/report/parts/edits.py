"""The steps of an edit, and the rewrites of a simplification."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text
from onnxsmith.base.report.parts.simplification import Entry


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


@dataclass(frozen=True)
class StepList(Part):
    """Each step's name, its fields, and its description."""

    title = "Steps"

    steps: tuple[tuple[str, str, str], ...]

    def blocks(self) -> Iterator[Block]:
        yield Table(("step", "fields"), tuple((name, fields) for name, fields, _ in self.steps))
        for name, _, text in self.steps:
            yield Text(f"{name}: {text}")


@dataclass(frozen=True)
class Rewrites(Part):
    """The rewrites that fired, in order, and the refused rewrites with their reasons."""

    title = "Rewrites"

    fired: tuple[Entry, ...]
    refused: tuple[Entry, ...]

    def blocks(self) -> Iterator[Block]:
        if not self.fired and not self.refused:
            yield Text("none")
        if self.fired:
            rows = tuple((str(e.id), e.rule, e.where, _change(e)) for e in self.fired)
            yield Table(("number", "rule", "where", "what"), rows, right=(0,), places=_places(2, self.fired))
        if self.refused:
            cells = tuple((e.rule, e.where, e.why_not) for e in self.refused)
            yield Table(("refused", "where", "why"), cells, places=_places(1, self.refused))


def _places(column: int, entries: tuple[Entry, ...]) -> tuple[Places, ...]:
    return (Places(column, "node", tuple(entry.where for entry in entries)),)


def _change(entry: Entry) -> str:
    if not entry.gone and not entry.made:
        return ""
    return f"{', '.join(entry.gone) or 'nothing'} → {', '.join(entry.made) or 'nothing'}"
