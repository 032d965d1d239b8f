"""How long each subject takes to load and to run, and how much memory it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Plot, Series, Table, Text, Tone
from onnxsmith.base.report.parts._text import duration, size


@dataclass(frozen=True)
class Latency:
    """The measures of one subject. Times are in seconds, memory is in bytes; None is unknown.

    `load` is the time to prepare the model in a new process, `first` that of its first run, which may allocate memory
    or compile; both are medians over the rounds. `p50` to `mean` are over the `runs` after the warm-up; a quantile that
    needs more runs is None. If one run is too short for the clock, a measured time is the mean of `inner` runs in a
    row. `lowest` and `highest` are the least and greatest median of a round. `loaded` and `peak` are the memory of the
    process above its imported library, after loading and at the peak. `curve` has 101 quantiles, for a drawing. `warm`
    counts the runs of the warm-up in a round; `steady` is whether its last windows agreed in every round. `where` names
    the call that was measured.
    """

    subject: str
    provider: str
    load: float
    first: float
    p50: float
    p95: float | None
    p99: float | None
    mean: float
    lowest: float
    highest: float
    runs: int
    inner: int
    loaded: int | None
    peak: int | None
    file: int | None
    warm: int
    steady: bool
    where: str
    curve: tuple[float, ...]


@dataclass(frozen=True)
class Latencies(Part):
    """The measures of all subjects. `failed` names subjects that could not be measured, each with the reason."""

    title: ClassVar[str] = "Latency"

    subjects: tuple[Latency, ...]
    failed: tuple[tuple[str, str], ...] = ()

    def blocks(self) -> Iterator[Block]:
        head = ("subject", "p50", "p95", "p99", "mean", "medians of rounds", "runs")
        rows = [
            (
                one.subject,
                duration(one.p50),
                duration(one.p95),
                duration(one.p99),
                duration(one.mean),
                f"{duration(one.lowest)} to {duration(one.highest)}",
                f"{one.runs:,}",
            )
            for one in self.subjects
        ]
        if rows:
            yield Table(head, tuple(rows), right=(1, 2, 3, 4, 5, 6))
            yield self._costs()
        for name, why in self.failed:
            yield Text(f"failed: {name}: {why}", Tone.BAD)
        for one in self.subjects:
            if one.inner > 1:
                yield Text(
                    f"{one.subject}: a time is the mean of {one.inner} runs in a row, too short for the clock alone"
                )
            if not one.steady:
                yield Text(f"{one.subject}: the warm-up ended before its times agreed", Tone.WARN)
        for where in dict.fromkeys(one.where for one in self.subjects):
            whose = [one.subject for one in self.subjects if one.where == where]
            yield Text(f"measured {where}" + (f": {', '.join(whose)}" if len(whose) < len(self.subjects) else ""))
        if rows:
            yield self._plot()

    def _costs(self) -> Table:
        head = ("subject", "load", "first run", "memory, loaded", "memory, peak", "file")
        rows = tuple(
            (
                one.subject,
                duration(one.load),
                duration(one.first),
                *("unknown" if bytes_ is None else size(bytes_) for bytes_ in (one.loaded, one.peak)),
                "" if one.file is None else size(one.file),
            )
            for one in self.subjects
        )
        return Table(head, rows, right=(1, 2, 3, 4, 5))

    def _plot(self) -> Plot:
        """Plots the share of runs that took at most a time. A curve ends at p99 if it would leave the page."""
        shares = [index / 100 for index in range(100)]
        curves = [
            Series(one.subject, tuple(1e3 * time for time in one.curve[:100]), tuple(shares)) for one in self.subjects
        ]
        return Plot(
            "Share of the runs that took at most so long", "ms", "share of runs", tuple(curves), logarithmic=True
        )
