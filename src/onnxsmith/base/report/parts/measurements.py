"""Times that `bench` measured, and how they compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Intervals, Part, Plot, Series, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import duration, size
from onnxsmith.base.words import several


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


@dataclass(frozen=True)
class Ratio:
    """The time of `subject` divided by that of the first subject: the median over rounds, and its 95% confidence
    interval from `low` to `high`. The interval is None if there were too few rounds. `equal` says whether the outputs
    agree, None if that is unknown; `outputs` has details. `ranked` is whether one of the two is called faster; if not,
    `why_not` says why."""

    subject: str
    ratio: float | None
    low: float | None
    high: float | None
    ranked: bool
    why_not: str
    equal: bool | None
    outputs: str

    def __str__(self) -> str:
        if self.ratio is None or self.low is None or self.high is None:
            return "unknown"
        return f"ratio {self.ratio:.3g}, interval {self.low:.3g} to {self.high:.3g}"

    @property
    def result(self) -> str:
        """The result in words: `faster`, `slower`, or why there is none."""
        if not self.ranked or self.ratio is None:
            return self.why_not
        return "slower" if self.ratio > 1 else "faster"


@dataclass(frozen=True)
class Ratios(Part):
    """The ratios to the subject `first`. They come from `rounds` rounds, each in new processes, and `blocks` blocks."""

    title: ClassVar[str] = "Ratio of times"

    first: str
    ratios: tuple[Ratio, ...]
    rounds: int
    block_count: int

    def blocks(self) -> Iterator[Block]:
        rows = tuple(
            (
                one.subject,
                "" if one.ratio is None else f"{one.ratio:.3f}",
                "" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}",
                one.result,
                one.outputs,
            )
            for one in self.ratios
        )
        yield Table((f"to {self.first}", "ratio", "95% interval", "result", "outputs"), rows, right=(1, 2))
        yield Text(
            f"{several(self.rounds, 'round')} in new processes, {several(self.block_count, 'block')} in balanced order"
        )
        yield Text("a round's time is the first decile of its runs, the ratio is the median over the rounds")
        for one in self.ratios:
            if one.equal is False:
                yield Text(f"{one.subject} computes something else: {one.outputs}", Tone.BAD)
        drawn = [
            (one.subject, one.low, one.ratio, one.high)
            for one in self.ratios
            if one.low is not None and one.ratio is not None and one.high is not None
        ]
        if drawn:
            yield Intervals(f"Time divided by that of {self.first}, with its 95% interval", tuple(drawn), 1.0)


@dataclass(frozen=True)
class Point:
    """The time in seconds of one run of `batch` items. For each pass the first decile is taken; the time is the median
    of these, with the least and the greatest. With `threads` 0 the runtime chooses."""

    subject: str
    threads: int
    batch: int
    seconds: float
    least: float
    greatest: float

    @property
    def throughput(self) -> float:
        """Items in a second."""
        return self.batch / self.seconds


@dataclass(frozen=True)
class Throughput(Part):
    """Throughput for each batch size of `dimension` ("" if only threads were varied) and number of threads. `failed`
    names combinations that could not be measured, each with the reason."""

    title: ClassVar[str] = "Throughput"

    dimension: str
    points: tuple[Point, ...]
    failed: tuple[tuple[str, str], ...] = ()

    def blocks(self) -> Iterator[Block]:
        head = ("subject", "threads", self.dimension or "batch", "time of a run", "passes", "items/s")
        rows = tuple(
            (
                one.subject,
                str(one.threads or "default"),
                str(one.batch),
                duration(one.seconds),
                f"{duration(one.least)} to {duration(one.greatest)}",
                f"{one.throughput:,.3g}" if one.throughput < 100 else f"{one.throughput:,.0f}",
            )
            for one in self.points
        )
        if rows:
            yield Table(head, rows, right=(1, 2, 3, 4, 5))
            yield Text("a pass's time is the first decile of its runs; the passes are in random order")
        for name, why in self.failed:
            yield Text(f"failed: {name}: {why}", Tone.BAD)
        yield from self._plots()

    def _plots(self) -> Iterator[Plot]:
        def series(name: str, points: list[Point], x: str) -> Series:
            points = sorted(points, key=lambda one: getattr(one, x))
            return Series(
                name,
                tuple(float(getattr(one, x)) for one in points),
                tuple(one.throughput for one in points),
                tuple(one.batch / one.greatest for one in points),
                tuple(one.batch / one.least for one in points),
            )

        for x, other in (("batch", "threads"), ("threads", "batch")):
            if len({getattr(one, x) for one in self.points}) < 2:
                continue
            keys = list(dict.fromkeys((one.subject, getattr(one, other)) for one in self.points))
            curves = tuple(
                series(
                    f"{name}, {other} {value or 'default'}",
                    [one for one in self.points if (one.subject, getattr(one, other)) == (name, value)],
                    x,
                )
                for name, value in keys
            )
            yield Plot(f"Throughput against {x}", x, "items/s", curves, logarithmic=x == "batch")


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
