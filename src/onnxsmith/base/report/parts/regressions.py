"""A comparison of the times of a benchmark with saved times of an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnxsmith.base.report.base import Block, Part, Table, Text, Tone
from onnxsmith.base.report.parts._text import duration


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
            return "no difference beyond the noise, which is larger than what is allowed"
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
                "" if one.ratio is None else f"{one.ratio:.3f}",
                "" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}",
                one.result,
            )
            for one in self.rows
        )
        if rows:
            yield Table(("subject", "before", "now", "ratio", "95% interval", "result"), rows, right=(1, 2, 3, 4))
        yield Text(f"a time may grow by {self.allow:.0%}")
        for name, (old, new) in self.differing.items():
            yield Text(f"{name} was {old} and is {new}", Tone.WARN)
        if not self.same_inputs:
            yield Text("the inputs are other ones", Tone.BAD)
        yield Text("sessions at different times differ by more than rounds of one; side by side is more certain")
