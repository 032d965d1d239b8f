"""The results of a comparison by layer on several inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone

_ROWS_IN_TERMINAL = 8
"""Rows of each table in a terminal. A choice: a third of a screen."""


@dataclass(frozen=True)
class OneInput:
    """The result on one input: how many tensors were compared, how many of them differ by more than rounding explains,
    the largest difference relative to a tensor's scale, and the first layer with an error of its own ("" if none)."""

    input: str
    pairs: int
    differing: int
    worst: float
    first: str
    op: str


@dataclass(frozen=True)
class FirstSeen:
    """A layer with an error of its own: the first input that shows the error, the layer's own difference there, and how
    many inputs show the error."""

    name: str
    op: str
    input: str
    own: float
    count: int


@dataclass(frozen=True)
class LayersByInput(Part):
    """The layers on several inputs. `inputs` are in the order of the inputs, `layers` in the order in which they were
    found."""

    title = "Layers by input"

    inputs: tuple[OneInput, ...]
    layers: tuple[FirstSeen, ...]
    note: str = ""

    @property
    def first(self) -> str:
        """The first input on which a layer has an error of its own; empty if there is none."""
        return next((one.input for one in self.inputs if one.first), "")

    def blocks(self) -> Iterator[Block]:
        rows = tuple(
            (one.input, str(one.pairs), str(one.differing), f"{one.worst:.2g}", " ".join((one.first, one.op)).strip())
            for one in self.inputs
        )
        bad = [at for at, one in enumerate(self.inputs) if one.first]
        fine = [at for at, one in enumerate(self.inputs) if not one.first]
        yield Table(
            ("input", "tensors", "differ", "largest difference", "first error"),
            rows,
            right=(1, 2, 3),
            rows_in_terminal=tuple(sorted([*bad, *fine][:_ROWS_IN_TERMINAL])),
        )
        if not self.layers:
            yield Text("no layer errs by itself on any of these inputs", Tone.GOOD)
        else:
            yield Text(f"first on {self.first}", Tone.BAD)
            yield Table(
                ("layer that errs", "operator", "first on", "own difference", "inputs"),
                tuple((x.name, x.op, x.input, f"{x.own:.2g}", f"{x.count} of {len(rows)}") for x in self.layers),
                right=(3, 4),
                rows_in_terminal=tuple(range(min(len(self.layers), _ROWS_IN_TERMINAL))),
                places=(Places(0, "tensor", tuple(x.name for x in self.layers)),),
            )
        if self.note:
            yield Text(self.note, Tone.WARN)
