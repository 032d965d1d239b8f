"""Describes what a command left: files, a page or a picture, and the time of each stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onnxsmith.base import devices
from onnxsmith.base.report.base import Bars, Block, Facts, Part, Table, Text, facts
from onnxsmith.base.report.parts.model_changes import of_weights_text, otherwise_text
from onnxsmith.base.words import first_few, nodes_and_constants, several, size

_FILES, _STAGES = 4, 3
"""Files, and stages of the time, that one line names. A choice."""
_LEAST = 0.05
"""Seconds of a stage that one line names: less is shown as 0.0. A choice."""


@dataclass(frozen=True)
class Written(Part):
    """The written files with their sizes in bytes, the model first. If nothing was written, `why_not` says why."""

    title = "Files"

    files: dict[str, int]
    why_not: str = ""

    def line(self) -> str:
        if not self.files:
            return f"nothing was written: {self.why_not}"
        return first_few([f"{path} ({size(count)})" for path, count in self.files.items()], _FILES)

    def blocks(self) -> Iterator[Block]:
        if not self.files:
            yield Text(f"nothing was written: {self.why_not}")
            return
        yield Facts(
            tuple((path, f"{count:,} bytes" if count else "a device or a pipe") for path, count in self.files.items())
        )


def written(files: Iterable[Path]) -> Written:
    """Makes the part for existing files. Paths inside the current folder are shown relative to it. A device or a pipe
    has 0 bytes."""
    return Written({_shown(file): 0 if devices.is_device(file) else file.stat().st_size for file in files})


def _shown(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


@dataclass(frozen=True)
class View(Part):
    """`nodes`, `rooms` and `constants` (Constant nodes) are counts by model, `overlays` the titles of the overlays. For
    each part of a report, `matched` has the number of its names that are nodes of the model, and the number of all its
    names. `pairs` counts the pairs of nodes of two models by kind of change; None for one model. `lines` are lines of
    the captured program. `origins` says for each report whether its hash is that of the model. `otherwise` counts the
    nodes without a partner that compute the same as nodes of the other model, and the regions that they form;
    `of_weights` counts the nodes without a partner that compute only from stored tensors."""

    title = "View"

    nodes: dict[str, int]
    rooms: dict[str, int]
    overlays: tuple[str, ...] = ()
    matched: dict[str, tuple[int, int]] = field(default_factory=dict)
    pairs: dict[str, int] | None = None
    lines: int = 0
    origins: dict[str, str] = field(default_factory=dict)
    otherwise: dict[str, int] = field(default_factory=dict)
    of_weights: dict[str, int] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                *(
                    (name, f"{self._counted(name, count)} in {several(self.rooms[name], 'level')}")
                    for name, count in self.nodes.items()
                ),
                ("difference", _counted(self.pairs) if self.pairs is not None else None),
                ("computed by other nodes", otherwise_text(self.otherwise)),
                ("of weights alone", of_weights_text(self.of_weights)),
                ("colours", ", ".join(self.overlays)),
                *((part, f"{found:,} of {asked:,} names are nodes") for part, (found, asked) in self.matched.items()),
                ("reports", _counted(Counter(self.origins.values())) if self.origins else None),
                ("program", several(self.lines, "line") if self.lines else None),
            ]
        )

    def _counted(self, name: str, count: int) -> str:
        return nodes_and_constants(count, self.constants.get(name, 0))


def _counted(pairs: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in pairs.items() if count) or "no nodes"


@dataclass(frozen=True)
class Timing(Part):
    """Seconds of wall time by stage, in the order in which the stages began: all that the user waited for. A command
    counts from the start of its process (`start-up`), a call from Python from the call. `other` is outside all
    stages."""

    title = "Time"

    seconds: dict[str, float]

    def line(self) -> str:
        most = sorted(self.seconds.items(), key=lambda item: -item[1])[:_STAGES]
        named = ", ".join(f"{name} {value:.1f} s" for name, value in most if value >= _LEAST)
        return f"{sum(self.seconds.values()):.1f} s" + (f": {named}" if named else "")

    def blocks(self) -> Iterator[Block]:
        total = sum(self.seconds.values())
        rows = [
            (name, f"{value:.2f} s", f"{value / total:.0%}" if total else "") for name, value in self.seconds.items()
        ]
        order = sorted(range(len(rows)), key=lambda at: -list(self.seconds.values())[at])
        shares = tuple((value / total,) if total else () for value in self.seconds.values())
        yield Table(
            ("stage", "time", "share"),
            (*rows, ("all", f"{total:.2f} s", "")),
            right=(1, 2),
            worst_first=(*order, len(rows)),
            bars=(Bars(2, (*shares, ()), "share of the time"),),
        )
