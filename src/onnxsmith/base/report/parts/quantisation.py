"""The layers that became narrower, what that cost, and the layers that stayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import size
from onnxsmith.base.words import several

_MOST = 30
"""Layers that a terminal shows. A choice."""
_WORTH = 0.02
"""From this share of the weights on, the headline names operators that the method leaves alone. A choice."""

_MUCH = 0.5
"""From this share of the weights on, the headline names layers that stay. A choice."""


@dataclass(frozen=True)
class LayerDamage:
    """One layer. `damage` is the error of its result if only this layer is changed, relative to the root mean square of
    the result; None if unknown. Three reasons, each "" if it does not apply: `kept`, why the layer stays as it is;
    `weights`, why only its weights became narrow; `eight`, why its weights have 8 bits instead of 4."""

    name: str
    op: str
    nbytes: int
    damage: float | None
    kept: str
    weights: str = ""
    eight: str = ""


@dataclass(frozen=True)
class LeftAlone:
    """Nodes of one operator that the method does not change: the bytes of their weights, and the reason."""

    op: str
    count: int
    nbytes: int
    why: str


@dataclass(frozen=True)
class CurvePoint:
    """A keep-list that was evaluated: the number of layers kept, the bytes of the model's weights, the score, and
    whether the score is within the budget. `weights` counts the layers of which only the weights were narrow, `eight`
    those with 8 bits instead of 4."""

    kept: int
    nbytes: int
    score: float
    meets: bool
    weights: int = 0
    eight: int = 0


def _is_bad(name: str, value: str) -> bool:
    is_refused = name.startswith("on ") and name != "on onnxruntime" and value.startswith("refused")
    return value.endswith("out of budget") or name.startswith("output ") or is_refused


@dataclass(frozen=True)
class Quantisation(Part):
    """The result of making a model narrower.

    `score` names the measure, `better` is `higher` or `lower`; `before` and `after` are the measures of the given model
    and of the written file, `bound` is the worst score that the budget allows. `samples` counts the tested samples,
    `calibrated` those that gave the ranges. `labelled` is whether the measure compares with labels of the data instead
    of the given model. `broken` counts samples with an output that is not finite. `times_ratio` is the new time divided
    by the old, None if it was not measured.
    """

    title = "Precision"

    to: str
    method: str
    layers: tuple[LayerDamage, ...]
    score: str
    better: str
    before: float
    after: float | None
    bound: float
    budget: str
    samples: int
    calibrated: int
    labelled: bool
    measured: bool
    broken: int
    bytes_before: int
    bytes_after: int | None
    evaluations: int
    curve: tuple[CurvePoint, ...] = ()
    left: tuple[LeftAlone, ...] = ()
    """Nodes that the method does not treat as layers, though they have weights or floats."""
    times_ratio: float | None = None
    times: str = ""
    also: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[LayerDamage, ...]:
        """The layers that stay as they are."""
        return tuple(layer for layer in self.layers if layer.kept)

    @property
    def weights(self) -> tuple[LayerDamage, ...]:
        """The layers whose weights alone became narrow."""
        return tuple(layer for layer in self.layers if layer.weights)

    @property
    def eight(self) -> tuple[LayerDamage, ...]:
        """The layers whose weights have 8 bits instead of 4."""
        return tuple(layer for layer in self.layers if layer.eight)

    def summary(self) -> str:
        """Returns one line: the layers that became narrow, the score, the size and the time."""
        changed = len(self.layers) - len(self.kept)
        count = len(self.layers) + sum(one.count for one in self.left)
        said = [f"{changed} of {several(count, 'layer')} became {self.to}"]
        if self.weights:
            said[0] += f" ({len(self.weights)} with their weights alone)"
        if self.eight:
            said[0] += f" ({len(self.eight)} with 8 bits)"
        refused = self.also.get("on onnxruntime", "")
        if refused:
            said.append(f"onnxruntime does not load it ({refused.removeprefix('refused: ')})")
        if "measured on" in self.also:
            said.append(f"{self.also['measured on']} runs it")
        said += self._left()
        if self.after is not None:
            said.append(f"{self.score} {self.before:.4g} → {self.after:.4g}{self._against()}")
        if self.bytes_after is not None:
            said.append(f"{self.bytes_after / max(1, self.bytes_before):.2f} of the size")
        if self.times:
            said.append(self.times)
        said += [f"{name}: {value}" for name, value in self.also.items() if _is_bad(name, value)]
        return ", ".join(said)

    def _left(self) -> Iterator[str]:
        """Yields the operators that the method left alone, with their share of the weights if that is large enough."""
        whole = sum(one.nbytes for one in self.layers) + sum(one.nbytes for one in self.left)
        kept = sum(one.nbytes for one in self.kept) / whole if whole else 0.0
        if kept >= _MUCH:
            yield f"{several(len(self.kept), 'layer')} with {kept:.0%} of the weights kept as given"
        for one in sorted(self.left, key=lambda one: -one.nbytes):
            share = one.nbytes / whole if whole else 0.0
            if share >= _WORTH:
                verb = "stays" if one.count == 1 else "stay"
                yield f"{one.count} {one.op} with {share:.0%} of the weights {verb} ({one.why})"

    def _against(self) -> str:
        if not self.measured:
            return " (accuracy was not measured)"
        return "" if self.labelled else " (without labels: agreement with the given model)"

    def blocks(self) -> Iterator[Block]:
        after = "of the given model" if self.after is None else f"→ {self.after:.6g}{self._against()}"
        yield facts(
            (
                ("method", self.method),
                (f"{self.score}, {self.better} is better", f"{self.before:.6g} {after}"),
                ("worst that the budget allows", f"{self.bound:.6g} ({self.budget})"),
                ("samples", f"{self.samples:,} tested, {self.calibrated:,} for calibration"),
                ("size", f"{size(self.bytes_before)} → {size(self.bytes_after)}" if self.bytes_after else ""),
                ("time", self.times),
                *self.also.items(),
                ("keep-lists evaluated", f"{self.evaluations:,}"),
            )
        )
        if self.broken:
            yield Text(f"{several(self.broken, 'sample')} gave an output that is not finite", Tone.BAD)
        if self.kept:
            yield self._table("stays as it is", self.kept)
        if self.weights:
            yield self._table("weights alone", self.weights)
        if self.eight:
            yield self._table("8 bits", self.eight)
        whole = (one for one in self.layers if not one.kept and not one.weights and not one.eight)
        changed = sorted(whole, key=lambda one: -(one.damage or 0.0))
        if changed:
            yield self._table("changed, most damage first", tuple(changed))
        if self.left:
            rows = tuple((one.op, f"{one.count}", size(one.nbytes), one.why) for one in self.left)
            yield Table(("not changed by this method", "nodes", "weights", "why"), rows, right=(1, 2))
        if len(self.curve) > 1:
            yield self._curve()
        yield from (Text(note, Tone.WARN) for note in self.notes)

    def _table(self, head: str, layers: tuple[LayerDamage, ...]) -> Table:
        rows = tuple(
            (
                one.name,
                one.op,
                size(one.nbytes),
                "" if one.damage is None else f"{one.damage:.2g}",
                one.kept or one.weights or one.eight,
            )
            for one in layers
        )
        return Table(
            (head, "operator", "weights", "own error", "why"),
            rows,
            right=(2, 3),
            places=(Places(0, "node", tuple(one.name for one in layers)),),
            worst_first=tuple(sorted(range(len(rows)), key=lambda row: -(layers[row].damage or 0.0))),
        )

    def _curve(self) -> Table:
        order = sorted(self.curve, key=lambda one: (one.kept, one.weights, one.eight, one.nbytes))
        columns = [
            ("layers kept", [f"{one.kept}" for one in order]),
            ("weights alone", [f"{one.weights}" for one in order] if any(one.weights for one in order) else []),
            ("in 8 bits", [f"{one.eight}" for one in order] if any(one.eight for one in order) else []),
            ("weights", [size(one.nbytes) for one in order]),
            (self.score, [f"{one.score:.6g}" for one in order]),
            ("within budget", ["yes" if one.meets else "no" for one in order]),
        ]
        shown = [(head, cells) for head, cells in columns if cells]
        rows = tuple(zip(*(cells for _, cells in shown), strict=True))
        return Table(tuple(head for head, _ in shown), rows, right=tuple(range(len(shown) - 1)))

    def rows_in_terminal(self) -> int:
        """Returns the number of rows of a table that a terminal shows."""
        return _MOST
