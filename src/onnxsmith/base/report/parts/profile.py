"""The time of a run by operator, by torch module, and by kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import duration

_MOST_ROWS = 15
"""Rows of a table in a terminal; a page has all. A choice."""


@dataclass(frozen=True)
class OperatorTime:
    """The time of all kernels of an operator in one run, in seconds, and their number in a run."""

    op: str
    count: int
    seconds: float


@dataclass(frozen=True)
class ModuleTime:
    """The time of a module in one run, in seconds, with the modules inside it; `own` is without them. `depth` is 0 at
    the top."""

    name: str
    depth: int
    seconds: float
    own: float


@dataclass(frozen=True)
class KernelTime:
    """The time of one kernel in one run, in seconds. `nodes` are the nodes of the file that it computes, `computes`
    their operators; `module` is the innermost torch module that contains them all. `attributed` is False if the nodes
    are unknown."""

    name: str
    op: str
    provider: str
    computes: tuple[str, ...]
    nodes: tuple[str, ...]
    module: str
    seconds: float
    attributed: bool


@dataclass(frozen=True)
class Profile(Part):
    """The profile of a model. Times are means over `runs` runs: the shortest quarter of all profiled runs. `run` is the
    whole run, which is longer with the profiler than without. `by` says what a module is: `module`, `scope` (of node
    names), or `operator` if the file names neither."""

    title: ClassVar[str] = "Profile"

    subject: str
    runs: int
    run: float
    by: str
    operators: tuple[OperatorTime, ...]
    modules: tuple[ModuleTime, ...]
    kernels: tuple[KernelTime, ...]
    note: str

    @property
    def attributed(self) -> float:
        """Seconds of kernels whose nodes are known."""
        return sum(one.seconds for one in self.kernels if one.attributed)

    @property
    def unattributed(self) -> float:
        """Seconds of the other kernels."""
        return sum(one.seconds for one in self.kernels if not one.attributed)

    def blocks(self) -> Iterator[Block]:
        total = self.attributed + self.unattributed
        yield facts(
            [
                ("subject", self.subject),
                ("a run, profiled", f"{duration(self.run)} (mean of {self.runs}, the shortest quarter)"),
                ("in kernels", f"{duration(total)}, {self._share(total, self.run)}"),
                ("of nodes that are known", f"{duration(self.attributed)}, {self._share(self.attributed, total)}"),
                ("not attributed", f"{duration(self.unattributed)}, {self._share(self.unattributed, total)}"),
            ]
        )
        if self.note:
            yield Text(self.note, Tone.WARN)
        yield _table(
            ("operator", "kernels", "time", "share"),
            [(o.op, str(o.count), duration(o.seconds), self._share(o.seconds, total)) for o in self.operators],
            (1, 2, 3),
        )
        if self.modules:
            yield _table(
                ("torch module" if self.by == "module" else "scope in node names", "time", "share", "of its own"),
                [
                    (
                        "  " * one.depth + (one.name or "(none)"),
                        duration(one.seconds),
                        self._share(one.seconds, total),
                        duration(one.own),
                    )
                    for one in self.modules
                ],
                (1, 2, 3),
                Places(0, "module", tuple(one.name for one in self.modules)),
            )
        yield _table(
            ("kernel", "operator", "computes", "module", "time", "share"),
            [
                (
                    one.name,
                    one.op,
                    _computes(one),
                    one.module,
                    duration(one.seconds),
                    self._share(one.seconds, total),
                )
                for one in self.kernels
            ],
            (4, 5),
            Places(0, "node", tuple(one.nodes[0] if one.nodes else "" for one in self.kernels)),
            worst_first=sorted(range(len(self.kernels)), key=lambda row: -self.kernels[row].seconds),
        )

    def _share(self, part: float, whole: float) -> str:
        return f"{part / whole:.1%}" if whole else ""


def _computes(one: KernelTime) -> str:
    if not one.attributed:
        return "not attributed"
    return " + ".join(one.computes) if one.computes != (one.op,) else ""


def _table(
    head: tuple[str, ...],
    rows: list[tuple[str, ...]],
    right: tuple[int, ...],
    places: Places | None = None,
    worst_first: Sequence[int] = (),
) -> Table:
    shown = tuple(range(_MOST_ROWS)) if len(rows) > _MOST_ROWS else None
    return Table(
        head,
        tuple(rows),
        right=right,
        rows_in_terminal=shown,
        places=(places,) if places else (),
        worst_first=tuple(worst_first),
    )
