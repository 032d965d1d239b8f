"""The channels that were removed from a model, what that cost, and the channels that had to stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.words import change, first_few, of_one, several, size, told_apart

_MOST = 30
"""Layers that a terminal shows. A choice."""


@dataclass(frozen=True)
class PrunedLayer:
    """A layer with its output channels before and after. `each` is the number of channels that go together, such as
    those of an attention head."""

    name: str
    op: str
    before: int
    after: int
    each: int = 1


@dataclass(frozen=True)
class FixedChannels:
    """Channels that stay: the layers that compute them, their number, and the reason. `is_free` is whether they could
    be removed, and only the share or the multiple keeps them."""

    layers: tuple[str, ...]
    count: int
    reason: str
    is_free: bool = False


@dataclass(frozen=True)
class SharePoint:
    """A share of channels that was evaluated: the channels removed, the score, and whether the score is within the
    budget."""

    share: float
    removed: int
    score: float
    meets: bool


@dataclass(frozen=True)
class Pruning(Part):
    """The result of removing channels.

    `share` is the requested share of each group's channels, or with `is_global` of all channels; `by` is the measure
    that ordered them. `removed` of `channels` were removed, and `free` of them could be removed; all counts are output
    channels of layers, so that channels of two layers that go together are two. `multiple` is None if wide layers keep
    a multiple of 8. `macs_before` and `macs_after` are the multiply-adds of one run at `sizes` of the symbolic
    dimensions. They are None if they could not be counted: `uncounted` says why, or which operators they leave out.

    `score` names the measure of `before` and `after`, `better` is `higher` or `lower`, `bound` is the worst score that
    the budget allows, None without a budget. `labelled` is whether the score compares with labels of the data instead
    of the given model, `measured` whether the user's own measure was evaluated on data. `times_ratio` is the new time
    divided by the old, None if it was not measured.
    """

    title = "Pruning"
    is_lossy = True
    recorded = (
        "share",
        "by",
        "is_global",
        "channels",
        "removed",
        "score",
        "better",
        "before",
        "after",
        "bound",
        "budget",
        "samples",
        "labelled",
        "measured",
        "notes",
    )

    share: float
    by: str
    is_global: bool
    multiple: int | None
    channels: int
    removed: int
    free: int
    layers: tuple[PrunedLayer, ...]
    fixed: tuple[FixedChannels, ...]
    parameters_before: int
    parameters_after: int | None
    macs_before: int | None
    macs_after: int | None
    bytes_before: int
    bytes_after: int | None
    score: str
    better: str
    before: float
    after: float | None
    bound: float | None
    budget: str
    samples: int
    labelled: bool
    measured: bool
    sizes: dict[str, int] = field(default_factory=dict)
    uncounted: str = ""
    times_ratio: float | None = None
    times: str = ""
    curve: tuple[SharePoint, ...] = ()
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """Returns one line: the removed channels, the score, the size and the time."""
        said = [f"{self.removed:,} of {several(self.channels, 'channel')} removed"]
        if self.after is not None:
            said.append(f"{self.score} {change(self.before, self.after, 4)}{self._against()}")
        if self.bytes_after is not None:
            said.append(f"{of_one(self.bytes_after / max(1, self.bytes_before))} of the bytes of its weights")
        if self.macs_before and self.macs_after is not None:
            said.append(f"{of_one(self.macs_after / self.macs_before)} of the multiply-adds")
        if self.times:
            said.append(self.times)
        return ", ".join(said)

    def _against(self) -> str:
        if not self.measured:
            return " (accuracy was not measured)"
        return "" if self.labelled else " (without labels: agreement with the given model)"

    def _went(self) -> str:
        share = self.removed / max(1, self.free)
        return f"{share:.3g} of the {self.free:,} that can be removed"

    def _multiple(self) -> str:
        if self.multiple is None:
            return "a multiple of 8, in layers with 32 or more"
        return f"a multiple of {self.multiple}" if self.multiple > 1 else ""

    def _table(self) -> Table:
        head = ("layer", "operator", "channels", "left")
        rows = [(one.name, one.op, f"{one.before:,}", f"{one.after:,}") for one in self.layers]
        places = (Places(0, "node", tuple(one.name for one in self.layers)),)
        if all(one.each == 1 for one in self.layers):
            return Table(head, tuple(rows), right=(2, 3), places=places)
        each = [f"{one.each:,}" for one in self.layers]
        whole = tuple((*row, e) for row, e in zip(rows, each, strict=True))
        return Table((*head, "removed together"), whole, right=(2, 3, 4), places=places)

    def _macs(self) -> str:
        if self.macs_before is None:
            return f"not counted: {self.uncounted}"
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        said = f"{self.macs_before:,}" if self.macs_after is None else _change(self.macs_before, self.macs_after)
        return said + (f" at {sizes}" if sizes else "") + (f"; {self.uncounted}" if self.uncounted else "")

    def line(self) -> str:
        said = [f"{several(len(self.layers), 'layer')} narrower" if self.layers else "no layer is narrower"]
        if self.parameters_after is not None:
            said.append(f"parameters {_change(self.parameters_before, self.parameters_after)}")
        pinned = [one for one in self.fixed if not one.is_free]
        if pinned:
            count = f"{self.channels - self.free:,} of {several(self.channels, 'channel')}"
            said.append(f"{count} cannot be removed: {first_few([one.reason for one in pinned], 1)}")
        return "; ".join(said)

    def blocks(self) -> Iterator[Block]:
        each = "all channels together" if self.is_global else "the channels of each group"
        score = f"{self.before:.6g}" if self.after is None else change(self.before, self.after)
        bound = None if self.bound is None else told_apart(self.before, self.bound)[1]
        yield facts(
            (
                ("channels", f"{self.removed:,} of {self.channels:,} removed: {self._went()}"),
                ("requested share", f"{self.share:.3g} of {each}"),
                ("order of removal", f"{self.by}, the least first"),
                ("channels kept", self._multiple()),
                (f"{self.score}, {self.better} is better", f"{score}{self._against()}"),
                ("worst that the budget allows", "" if bound is None else f"{bound} ({self.budget})"),
                ("samples", f"{self.samples:,}"),
                ("parameters", _change(self.parameters_before, self.parameters_after)),
                ("multiply-adds", self._macs()),
                ("weights", f"{size(self.bytes_before)} → {size(self.bytes_after)}" if self.bytes_after else ""),
                ("time", self.times),
                ("shares evaluated", f"{len(self.curve):,}" if self.curve else ""),
            )
        )
        if self.layers:
            yield self._table()
        if self.fixed:
            yield Table(
                ("layers whose channels stay", "channels", "why"), tuple(_fixed(one) for one in self.fixed), right=(1,)
            )
        if len(self.curve) > 1:
            yield self._curve()
        yield from (Text(note, Tone.WARN) for note in self.notes)

    def _curve(self) -> Table:
        order = sorted(self.curve, key=lambda one: one.share)
        columns = (told_apart(*(one.share for one in order), digits=3), told_apart(*(one.score for one in order)))
        rows = tuple(
            (share, f"{one.removed:,}", score, "yes" if one.meets else "no")
            for one, share, score in zip(order, *columns, strict=True)
        )
        return Table(("share", "removed", self.score, "within budget"), rows, right=(0, 1, 2))

    def rows_in_terminal(self) -> int:
        """Returns the number of rows of a table that a terminal shows."""
        return _MOST


def _change(before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return ""
    return f"{before:,} → {after:,}" + (f" ({after / before:.2f})" if before else "")


def _fixed(one: FixedChannels) -> tuple[str, str, str]:
    return first_few(one.layers, 2 if len(one.layers) > 3 else 3), f"{one.count:,}", one.reason
