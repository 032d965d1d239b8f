"""How a benchmark was measured: inputs, machine, versions, and what disturbed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Text, Tone, facts


@dataclass(frozen=True)
class Measurement(Part):
    """The circumstances of a benchmark.

    `sizes` are the sizes of symbolic dimensions, `inputs` the types of the inputs, `origin` the source of their values.
    `seconds` is the time spent in measured turns and warm-ups; `ended` says why measuring stopped. `load` is the load
    average at the beginning. `others` is the share of processor time that other processes took, `stolen` the share that
    the host of a virtual machine took; None is unknown. `clock` is the resolution of the clock in seconds. Intervals
    extend at least `floor` (relative) to each side.
    """

    title: ClassVar[str] = "Measurement"

    sizes: dict[str, int]
    inputs: dict[str, str]
    origin: str
    rounds: int
    seconds: float
    ended: str
    processor: str
    cores: int
    versions: dict[str, str]
    load: float | None
    others: float | None
    stolen: float | None
    busy: bool
    clock: float
    floor: float

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("sizes", ", ".join(f"{name}={size}" for name, size in self.sizes.items())),
                ("inputs", ", ".join(f"{name} {kind}" for name, kind in self.inputs.items())),
                ("values", self.origin),
                ("rounds", f"{self.rounds}, {self.ended}"),
                ("machine", f"{self.processor}, {self.cores} cores"),
                ("versions", ", ".join(f"{name} {version}" for name, version in self.versions.items())),
                ("load at the beginning", None if self.load is None else f"{self.load:.2f}"),
                ("processors used by others", None if self.others is None else f"{self.others:.0%}"),
                ("processors taken by the host", f"{self.stolen:.0%}" if self.stolen else None),
            ]
        )
        if self.busy:
            yield Text(
                f"the machine was busy with other processes: intervals are at least {self.floor:.1%} to each side, and "
                "times are longer than on a quiet machine",
                Tone.WARN,
            )
