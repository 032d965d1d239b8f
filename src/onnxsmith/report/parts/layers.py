"""Where two models part, tensor by tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from onnxsmith.report.base import Block, Chart, Facts, Part, Table, Text, Tone

_SHOWN = 12
_GROWING = 5
_SEEN = 0.01
"""Of the largest difference: what is below is not ranked by growth."""


@dataclass(frozen=True)
class Layer:
    """One tensor of both sides.

    Differences are the largest, relative to the tensor's scale: `inherited` with everything computed from the inputs,
    `own` with the operation given what the reference has, of which rounding explains `allowed`. `growth` is
    `inherited` over the largest of the tensors that the operation reads. `verdict` is `equal`, `inherited`, `own
    error`, `own error, slight` (little more than is allowed, and no output shows it), `rounding` (float64 says that
    this side is right), `computed otherwise` (undone further on) or `own error, not followed`. `differs` says whether
    it is further off in the plain run than rounding explains.
    """

    name: str
    reference: str
    paired_by: str
    op: str
    steps: tuple[str, ...]
    module: str
    source: str
    dtype: str
    shape: tuple[int, ...]
    inherited: float
    absolute: float
    own: float | None
    allowed: float
    growth: float | None
    verdict: str
    differs: bool = False
    reason: str = ""
    metrics: dict[str, float] = field(default_factory=dict)

    def place(self) -> str:
        """The torch module and the user's line, as far as the file says."""
        return " ".join(text for text in (self.module, f"({self.source})" if self.source else "") if text)


def growing(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Names of the few layers in which the error grows most, the most first; where it begins it grows from nothing.
    Left out is what is far below the largest difference there is."""
    most = max((layer.inherited for layer in layers), default=0.0)
    seen = [layer for layer in layers if layer.inherited > 0 and not layer.inherited < _SEEN * most]
    grown = [layer for layer in seen if layer.growth is None or layer.growth > 1]
    ranked = sorted(grown, key=lambda layer: -(math.inf if layer.growth is None else layer.growth))
    return tuple(layer.name for layer in ranked[:_GROWING])


@dataclass(frozen=True)
class NotFinite:
    """The first tensor that has NaN or infinity where the reference has none, and the ranges of what it is made
    from."""

    name: str
    op: str
    count: int
    of: int
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Inside:
    """The first tensor in the body of a loop, or in a branch, that differs when the node is given what the reference
    has: the time that it is computed `iteration`, counted from 1, out of `of`."""

    name: str
    op: str
    node: str
    iteration: int
    of: int
    reason: str


@dataclass(frozen=True)
class Layers(Part):
    """`layers` are in the candidate's order; `culprits` are names of those that err by themselves: in order, those that
    matter little for the outputs last. `left` is how far the output that differs most is off, in root mean square over
    its scale, and how far with the reference's value in the place of the first culprit.

    `share` is the part of the tensors that were paired, of the side that has fewer; `paired` counts pairs by what
    says so; `only_reference` and `only_candidate` have no counterpart. `exposed` says when looking at the tensors
    changed the outputs. `growing` are the layers in which the error grows most, the most first.
    """

    title = "Layers"

    reference: str
    candidate: str
    input: str
    layers: tuple[Layer, ...]
    culprits: tuple[str, ...]
    share: float
    paired: dict[str, int]
    only_reference: tuple[str, ...]
    only_candidate: tuple[str, ...]
    runs: int = 0
    not_finite: NotFinite | None = None
    left: tuple[float, float] | None = None
    inside: Inside | None = None
    exposed: str = ""
    growing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def layer(self, name: str) -> Layer:
        """The layer of that name. Raises LookupError when it was not looked at."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise LookupError(f"no layer {name!r}")

    def blocks(self) -> Iterator[Block]:
        ways = ", ".join(f"{count} by {how}" for how, count in self.paired.items())
        rows = [("input", self.input), ("pairs", f"{len(self.layers)} ({ways}), {self.share:.0%} of the tensors")]
        for who, names in (("reference", self.only_reference), ("candidate", self.only_candidate)):
            if names:
                more = ", …" if len(names) > _SHOWN else ""
                rows.append((f"only in the {who}", f"{len(names)}: {', '.join(names[:_SHOWN])}{more}"))
        yield Facts(tuple(rows))
        yield from self._verdict()
        yield Chart(
            "relative difference, layer by layer",
            tuple(layer.name for layer in self.layers),
            (
                ("inherited", tuple(layer.inherited for layer in self.layers)),
                ("own", tuple(layer.own for layer in self.layers)),
                ("allowed", tuple(layer.allowed for layer in self.layers)),
            ),
        )
        yield self._table()
        yield from (Text(note, Tone.WARN) for note in self.notes)

    def _verdict(self) -> Iterator[Block]:
        if self.culprits:
            first = self.layer(self.culprits[0])
            yield Text(
                f"first error: {first.name}, by {first.op} {', '.join(first.steps)}: off by {first.own or 0:.2g} of "
                f"its scale on the reference's own inputs, where rounding explains {first.allowed:.2g}",
                Tone.BAD,
            )
            if self.left is not None:
                yield Text(self._left(*self.left), Tone.BAD)
            if self.inside:
                found = self.inside
                yield Text(
                    f"in its body, time {found.iteration} of {found.of}: {found.name}, by {found.op} {found.node}: "
                    f"{found.reason}",
                    Tone.BAD,
                )
            if first.place():
                yield Text(f"it comes from {first.place()}", Tone.BAD)
            if len(self.culprits) > 1:
                yield Text(f"others, each by itself: {', '.join(self.culprits[1:])}", Tone.BAD)
        else:
            yield Text("no operation errs by itself by more than rounding explains", Tone.GOOD)
        if self.not_finite:
            lost = self.not_finite
            yield Text(
                f"first NaN or infinity: {lost.name}, by {lost.op}, {lost.count} of {lost.of} elements; "
                f"its inputs: {'; '.join(lost.inputs)}",
                Tone.BAD,
            )
        if self.growing:
            said = ", ".join(_grown(self.layer(name)) for name in self.growing)
            yield Text(f"the error grows most at: {said}")
        if self.exposed:
            yield Text(self.exposed, Tone.WARN)

    def _left(self, present: float, absent: float) -> str:
        if not present:
            return "the outputs do not show it"
        return f"with the reference's value there the outputs are {absent:.2g} of their scale off, else {present:.2g}"

    def _table(self) -> Table:
        rows = tuple(
            (
                layer.name,
                layer.op,
                layer.place(),
                f"{layer.inherited:.2g}",
                "" if layer.own is None else f"{layer.own:.2g}",
                f"{layer.allowed:.2g}",
                "" if layer.growth is None else f"{layer.growth:.3g}",
                layer.verdict,
            )
            for layer in self.layers
        )
        head = ("tensor", "operator", "module and line", "inherited", "own", "allowed", "growth", "verdict")
        order = sorted(range(len(rows)), key=lambda row: _rank(self.layers[row]))
        return Table(head, rows, right=(3, 4, 5, 6), first=tuple(order[:_SHOWN]))


def _grown(layer: Layer) -> str:
    how = "from nothing" if layer.growth is None else f"by {layer.growth:.2g}"
    return f"{layer.name} ({layer.op}, {how} to {layer.inherited:.2g})"


_ORDER = (
    "own error", "own error, not followed", "own error, slight", "rounding", "computed otherwise", "inherited", "equal",
)  # fmt: skip


def _rank(layer: Layer) -> tuple[int, float]:
    return (_ORDER.index(layer.verdict) if layer.verdict in _ORDER else 0, -(layer.growth or 0.0))
