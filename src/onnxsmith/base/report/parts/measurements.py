"""Describes times that `bench` measured: how they compare, with saved times too, and the time of each operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Bars, Block, Intervals, Part, Places, Plot, Series, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.words import of_one, several, size, told_apart


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

    def line(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        machine = f"{self.processor}, {self.cores} cores"
        return ", ".join(text for text in (sizes, several(self.rounds, "round"), machine) if text)

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
        ratio, low, high = told_apart(self.ratio, self.low, self.high, digits=3)
        return f"ratio {ratio}, interval {low} to {high}"

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
                "" if one.ratio is None else of_one(one.ratio, 3),
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
        yield Text("the time of a round is the first decile of its runs; the ratio is the median over the rounds")
        for one in self.ratios:
            if one.equal is False:
                yield Text(f"{one.subject} returns different outputs: {one.outputs}", Tone.BAD)
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


_LOW, _HIGH = 5, 95
"""Quantiles at the ends of a box, in hundredths. A choice: the slowest runs would make all boxes short."""


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
            slowest_first = tuple(sorted(range(len(rows)), key=lambda at: -self.subjects[at].p50))
            most = max(one.curve[_HIGH] if one.curve else one.p50 for one in self.subjects) or 1.0
            boxes = tuple(
                tuple(one.curve[at] / most for at in (_LOW, 25, 50, 75, _HIGH)) if one.curve else ()
                for one in self.subjects
            )
            yield Table(
                head,
                tuple(rows),
                right=(1, 2, 3, 4, 5, 6),
                worst_first=slowest_first,
                bars=(Bars(1, boxes, "runs: 5%, 25%, 50%, 75%, 95%"),),
            )
            yield self._costs()
        for name, why in self.failed:
            yield Text(f"failed: {name}: {why}", Tone.BAD)
        for one in self.subjects:
            if one.inner > 1:
                yield Text(
                    f"{one.subject}: a time is the mean of {one.inner} successive runs, because one run is too short "
                    "for the clock"
                )
            if not one.steady:
                yield Text(f"{one.subject}: the warm-up ended before its times were stable", Tone.WARN)
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
            "Share of the runs that took at most this time", "ms", "share of runs", tuple(curves), logarithmic=True
        )


@dataclass(frozen=True)
class Regression:
    """A subject's time in seconds `before` and `now`, and their ratio with its 95% interval; None if a side has too few
    rounds. `slower`: the whole interval is above the allowed ratio. `perhaps`: its upper end is above. `beyond`: the
    ratio itself is above."""

    subject: str
    before: float | None
    now: float
    ratio: float | None
    low: float | None
    high: float | None
    slower: bool
    perhaps: bool
    beyond: bool = False

    @property
    def result(self) -> str:
        """The result in words."""
        if self.ratio is None or self.low is None or self.high is None:
            return "unknown: too few rounds"
        if self.slower:
            return "slower"
        if self.perhaps and (self.beyond or self.low > 1):
            return "perhaps slower, within the noise"
        if self.perhaps:
            return "no difference beyond the noise, but the noise is larger than the allowed change"
        return "faster" if self.high < 1 else "not slower"


@dataclass(frozen=True)
class Regressions(Part):
    """The comparison with the file `baseline`. `differing` are the circumstances that changed, with their values before
    and now; `same_inputs` is whether the inputs are the same. `allow` is the share by which a time may grow.
    `any_machine` is whether the user asked to compare in spite of other circumstances."""

    title: ClassVar[str] = "Against the baseline"

    baseline: str
    rows: tuple[Regression, ...]
    differing: dict[str, tuple[str, str]]
    same_inputs: bool
    allow: float
    any_machine: bool

    def blocks(self) -> Iterator[Block]:
        rows = tuple(
            (
                one.subject,
                duration(one.before),
                duration(one.now),
                "" if one.ratio is None else of_one(one.ratio, 3),
                "" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}",
                one.result,
            )
            for one in self.rows
        )
        if rows:
            yield Table(("subject", "before", "now", "ratio", "95% interval", "result"), rows, right=(1, 2, 3, 4))
        yield Text(f"a time may grow by at most {self.allow:.0%}")
        for name, (old, new) in self.differing.items():
            yield Text(f"{name} was {old}, and is now {new}", Tone.WARN)
        if not self.same_inputs:
            yield Text("the inputs differ from those of the baseline", Tone.BAD)
        yield Text(
            "measurements at different times differ by more than rounds of one measurement; to be more certain, "
            "measure both models side by side"
        )


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
                ("a run, profiled", f"{duration(self.run)} (mean of {self.runs} runs, the shortest quarter)"),
                ("in kernels", f"{duration(total)}, {self._share(total, self.run)}"),
                ("in kernels of known nodes", f"{duration(self.attributed)}, {self._share(self.attributed, total)}"),
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
