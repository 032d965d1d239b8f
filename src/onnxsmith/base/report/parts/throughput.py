"""Throughput by batch size and number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Plot, Series, Table, Text, Tone
from onnxsmith.base.report.parts._text import duration


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
