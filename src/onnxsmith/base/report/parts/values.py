"""The intermediate tensors of a model on one input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import dims, number
from onnxsmith.base.report.parts.tables import Statistics
from onnxsmith.base.words import several

_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class ValueRow:
    """One tensor. `roles` are `input` and `output`; an intermediate tensor has no role. `path` are the bodies around
    it.

    `shapes` has one shape for each array: a sequence, or a tensor in a loop, may have several arrays or none.
    `histogram` counts the finite elements between `statistics.min` and `max` in bins of equal width. For strings, and
    if no statistics were requested, `histogram` is empty and `statistics` is None.
    """

    name: str
    roles: tuple[str, ...]
    path: tuple[str, ...]
    operator: str
    dtype: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    statistics: Statistics | None = None
    histogram: tuple[int, ...] = ()


@dataclass(frozen=True)
class Values(Part):
    """The tensors of one run. `refused` are tensors that could not be read, with the reason. `moved` are graph outputs
    that change when intermediate tensors are made outputs, too: the runtime then fuses fewer nodes."""

    title = "Values"

    model: str
    runtime: str
    provider: str
    runs: int
    rows: tuple[ValueRow, ...]
    refused: dict[str, str]
    moved: dict[str, str]

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("model", self.model),
                ("runtime", f"{self.runtime}, {self.provider}"),
                ("tensors", f"{len(self.rows):,}, read in {several(self.runs, 'run')}"),
            ]
        )
        places = (Places(0, "tensor", tuple(row.name for row in self.rows)),)
        if any(row.statistics for row in self.rows):
            yield Table(
                ("tensor", "dtype and shape", "min", "mean", "max", "std", "odd", "histogram"),
                tuple((*_named(row), *_counted(row)) for row in self.rows),
                right=(2, 3, 4, 5),
                places=places,
                worst_first=tuple(sorted(range(len(self.rows)), key=lambda row: _harm(self.rows[row]))),
            )
        else:
            rows = tuple((*_named(row), " ".join(row.roles) or row.operator) for row in self.rows)
            yield Table(("tensor", "dtype and shape", "is"), rows, places=places)
        for name, why in self.moved.items():
            yield Text(f"output {name} changes when intermediate tensors are read: {why}", Tone.WARN)
        if self.refused:
            yield Table(("not read", "why"), tuple(self.refused.items()))


def _harm(row: ValueRow) -> tuple[bool, bool]:
    """Returns a key that sorts tensors with NaN first, then those with infinities; the others keep their order."""
    seen = row.statistics
    return seen is None or not seen.nan, seen is None or not seen.inf


def _named(row: ValueRow) -> tuple[str, str]:
    return row.name, f"{row.dtype}{_shape(row)}" if row.shapes else f"{row.dtype}, {_none(row)}"


def _none(row: ValueRow) -> str:
    return "never computed" if row.path else "absent" if row.kind == "absent" else "an empty sequence"


def _shape(row: ValueRow) -> str:
    first, *others = row.shapes
    if row.kind != "list":
        return dims(first)
    same = dims(first) if all(shape == first for shape in others) else "[…]"
    return f"{same}, {len(row.shapes)} times"


def _counted(row: ValueRow) -> tuple[str, ...]:
    found = row.statistics
    if found is None:
        return ("",) * 6
    return (number(found.min), number(found.mean), number(found.max), number(found.std), found.oddities(), bars(row))


def bars(row: ValueRow) -> str:
    """Returns the histogram as text: the highest bin is a full block, an empty bin a blank."""
    most = max(row.histogram, default=0)
    return "".join(_BARS[-(-count * len(_BARS) // most) - 1] if count else " " for count in row.histogram)
