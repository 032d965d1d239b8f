"""A comparison of two models over consecutive calls, each with the state that the previous call returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Chart, Part, Table, Text, Tone
from onnxsmith.base.report.parts.state import StatePair

_ROWS_IN_TERMINAL = 8
"""Rows in a terminal. A choice: a third of a screen."""
_PAIRS = 4
"""Largest number of pairs of a state that are listed. A choice: a decoder has two for each of its layers."""


@dataclass(frozen=True)
class Step:
    """One call. `difference` is the largest difference of an output from the reference's, relative to its scale, if
    both sides get the reference's state; `output` is that output, and `reason` says how it differs beyond rounding.
    `own` and `own_output` are the same if each side has kept its own state since the first step; None if not run."""

    label: str
    output: str
    difference: float
    reason: str
    own: float | None = None
    own_output: str = ""


@dataclass(frozen=True)
class Steps(Part):
    """The comparison of consecutive calls. `state` pairs each state input with the output that it gets in the next
    call. `steps` are in order. `first` is the label of the first step that differs when given the reference's state;
    empty if none does. `drift` describes the effect of the candidate's own state; `drifts` is whether that effect is a
    difference beyond that."""

    title = "Steps"

    state: tuple[StatePair, ...]
    steps: tuple[Step, ...]
    first: str = ""
    drift: str = ""
    drifts: bool = False
    notes: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield Table(
            ("state", "gets in the next step", "in the first step"),
            tuple((pair.input, pair.output, pair.first) for pair in self.state),
            rows_in_terminal=tuple(range(min(len(self.state), _PAIRS))),
        )
        yield self._verdict()
        if self.drift:
            yield Text(self.drift, Tone.BAD if self.drifts else Tone.PLAIN)
        yield Chart(
            "difference from the reference, step by step",
            tuple(step.label for step in self.steps),
            (
                ("with the reference's state", tuple(step.difference for step in self.steps)),
                ("with its own state", tuple(step.own for step in self.steps)),
            ),
            x="steps",
            y="difference, relative to the output's scale",
        )
        yield self._table()
        yield from (Text(note, Tone.WARN) for note in self.notes)

    def _verdict(self) -> Text:
        for step in self.steps:
            if step.label == self.first:
                said = f"first difference: {step.label}, output {step.output}: {step.reason}"
                return Text(f"{said}, with the state of the reference", Tone.BAD)
        return Text(f"{len(self.steps)} steps agree, each from the state of the reference", Tone.GOOD)

    def _table(self) -> Table:
        rows = tuple(
            (
                step.label,
                step.output,
                f"{step.difference:.2g}",
                "" if step.own is None else f"{step.own:.2g}",
                "DIFFERENT" if step.reason else "equal",
            )
            for step in self.steps
        )
        worst = sorted(range(len(rows)), key=lambda at: (not self.steps[at].reason, -self.steps[at].difference))
        begin = next((at for at, step in enumerate(self.steps) if step.label == self.first), 0)
        near = (0, begin - 1, begin, begin + 1, len(rows) - 1)
        shown = [at for at in dict.fromkeys((*near, *worst)) if 0 <= at < len(rows)][:_ROWS_IN_TERMINAL]
        return Table(
            ("step", "output", "difference", "with its own state", "verdict"),
            rows,
            right=(2, 3),
            rows_in_terminal=tuple(sorted(shown)),
        )
