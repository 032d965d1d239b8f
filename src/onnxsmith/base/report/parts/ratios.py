"""The times of subjects relative to the first, with confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Intervals, Part, Table, Text, Tone
from onnxsmith.base.words import several


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
