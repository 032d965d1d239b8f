"""Describes the tensors inside of models: a comparison tensor by tensor, on one input or several, and their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from onnxsmith.base.report.base import Bars, Block, Chart, Facts, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import dims, number
from onnxsmith.base.report.parts.item_views import Statistics
from onnxsmith.base.words import first_few, several

_ROWS_IN_TERMINAL = 12
"""Rows in a terminal, and names in a list. A choice: half a screen."""
_GROWING = 5
"""Number of layers listed by growth. A choice: one line."""
_CHANGES = 3
"""Largest number of changes of one node in a sentence. A choice: one line."""
_SEEN = 0.01
"""Layers whose difference is below this share of the largest difference are not ranked by growth. A choice: tiny errors
grow fast."""


@dataclass(frozen=True)
class Layer:
    """One tensor that both sides compute.

    A difference is that of the element that differs most, relative to the tensor's scale. `inherited` is the difference
    when both sides run from the graph inputs. `own` is the difference when the candidate's operation gets the
    reference's tensors as inputs; rounding explains `allowed` of it. `growth` is `inherited` divided by the largest
    `inherited` of the operation's inputs. `differs` says whether `inherited` exceeds what rounding explains.

    `verdict` is `equal`, `inherited`, `own error`, `own error, slight` (little more than `allowed`, and no output shows
    it), `rounding` (a float64 run confirms the candidate), `computed otherwise` (a later node undoes the difference) or
    `own error, not followed`.
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
        """Returns the torch module and the user's source line, if the file names them."""
        return " ".join(text for text in (self.module, f"({self.source})" if self.source else "") if text)


def growing(layers: Sequence[Layer]) -> tuple[str, ...]:
    """Returns the names of the few layers in which the error grows most, largest growth first. A layer that introduces
    an error has infinite growth. Layers far below the largest difference are left out."""
    most = max((layer.inherited for layer in layers), default=0.0)
    seen = [layer for layer in layers if layer.inherited > 0 and not layer.inherited < _SEEN * most]
    grown = [layer for layer in seen if layer.growth is None or layer.growth > 1]
    ranked = sorted(grown, key=lambda layer: -(math.inf if layer.growth is None else layer.growth))
    return tuple(layer.name for layer in ranked[:_GROWING])


@dataclass(frozen=True)
class NotFinite:
    """The first tensor with a NaN or infinity that the reference does not have. `inputs` are the ranges of its node's
    inputs."""

    name: str
    op: str
    count: int
    of: int
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Inside:
    """The first tensor in a loop body or a branch that differs when the node gets the reference's inputs. `iteration`
    counts from 1, out of `of`."""

    name: str
    op: str
    node: str
    iteration: int
    of: int
    reason: str

    @property
    def step(self) -> str:
        """Returns the operator and the label of the node that computes the tensor."""
        return f"{self.op} {self.node}"


@dataclass(frozen=True)
class Cause:
    """The difference between the two graphs that explains the error: how the candidate's `node` differs from its
    counterpart `reference`, as `changes`. It was tried on a copy: `before` is the difference of the outputs' worst
    element, relative to scale; `after` is the same with the node as in the reference. `agrees` says whether all outputs
    then agree."""

    node: str
    reference: str
    op: str
    changes: tuple[str, ...]
    before: float
    after: float
    agrees: bool
    patch: str = ""
    """The steps of a patch file for `onnxsmith edit` that undo the difference, if only attributes or constants
    differ."""
    more: tuple[str, ...] = ()
    """Texts of the differences of other nodes that were undone together with this one."""
    by_hand: tuple[str, ...] = ()
    """Texts of the differences that `patch` does not undo, if it undoes others."""

    def said(self) -> str:
        """Returns the cause as a text: `epsilon 1e-05 → 0.001 at LayerNormalization norm`."""
        listed = first_few(self.changes, _CHANGES, "; ")
        return "; and ".join((f"{listed} at {self.op} {self.node}", *self.more))


@dataclass(frozen=True)
class Layers(Part):
    """The comparison of two models layer by layer.

    `layers` are in the candidate's order. `culprits` are the names of the layers with an error of their own, in that
    order; those that matter little for the outputs come last. `left` has two numbers for the output that differs most:
    the difference of its worst element, relative to scale, and the same after the first culprit got the reference's
    value.

    `share` is the share of paired tensors, on the side with fewer tensors. `paired` counts pairs by the method that
    found them. `only_reference` and `only_candidate` have no pair. `pattern` says how the first culprit differs if that
    is simple: `times 1.5`. If both sides are graphs, `cause` is the difference of the graphs that explains the first
    culprit, and `differences` are those of its nodes. `exposed` is a note for the case that reading intermediate
    tensors changed the outputs. `growing` are the layers in which the error grows most.
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
    pattern: str = ""
    cause: Cause | None = None
    differences: tuple[str, ...] = ()
    exposed: str = ""
    growing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def layer(self, name: str) -> Layer:
        """Returns the layer of that name. Raises LookupError when the comparison has no such layer."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise LookupError(f"no layer {name!r}")

    def line(self) -> str:
        if not self.layers:
            return "no layers were compared"
        pairs = f"{several(len(self.layers), 'pair')} of tensors ({self.share:.0%})"
        if not self.culprits:
            return f"{pairs}; no operation adds an error beyond rounding"
        first = self.layer(self.culprits[0])
        others = several(len(self.culprits) - 1, "other") if len(self.culprits) > 1 else ""
        said = f"{pairs}; first operation that adds an error: {first.op} ({first.name})"
        return said + (f", and {others}" if others else "")

    def blocks(self) -> Iterator[Block]:
        if not self.layers:
            yield from (Text(note, Tone.WARN) for note in self.notes)
            return
        ways = ", ".join(f"{count} by {how}" for how, count in self.paired.items())
        rows = [("input", self.input), ("pairs", f"{len(self.layers)} ({ways}), {self.share:.0%} of the tensors")]
        for who, names in (("reference", self.only_reference), ("candidate", self.only_candidate)):
            if names:
                rows.append((f"only in the {who}", f"{len(names)}: {first_few(names, _ROWS_IN_TERMINAL)}"))
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
            x="tensors in the order of the model",
            y="difference, relative to the tensor's scale",
        )
        yield self._table()
        yield from (Text(note, Tone.WARN) for note in self.notes)

    def _verdict(self) -> Iterator[Block]:
        if self.culprits:
            first = self.layer(self.culprits[0])
            yield Text(f"first error: {first.name}, by {first.op} {', '.join(first.steps)}: {_off(first)}", Tone.BAD)
            if self.pattern:
                yield Text(f"how it differs: {self.pattern}", Tone.BAD)
            if self.left is not None:
                yield Text(self._left(*self.left), Tone.BAD)
            if self.inside:
                found = self.inside
                yield Text(
                    f"in its body, iteration {found.iteration} of {found.of}: {found.name}, by {found.op} "
                    f"{found.node}: "
                    f"{found.reason}",
                    Tone.BAD,
                )
            yield from self._cause()
            if first.place():
                yield Text(f"the operation comes from {first.place()}", Tone.BAD)
            if len(self.culprits) > 1:
                yield Text(f"further tensors with an added error: {', '.join(self.culprits[1:])}", Tone.BAD)
        else:
            yield Text("no operation adds an error beyond rounding", Tone.GOOD)
            yield from self._cause()
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

    def _cause(self) -> Iterator[Block]:
        found = self.cause
        if found is None:
            if self.differences:
                yield Text(
                    f"the nodes that compute this tensor differ in the two graphs: {'; '.join(self.differences)}",
                    Tone.BAD,
                )
            return
        yield Text(f"the graphs differ there, old → new: {found.said()}", Tone.BAD)
        nodes = "nodes in their place" if found.more else "node in its place"
        if found.agrees:
            yield Text(f"tried: with the reference's {nodes}, all outputs agree", Tone.GOOD)
        else:
            yield Text(
                f"tried: with the reference's {nodes}, the worst element of the outputs is off by {found.after:.2g} "
                f"of its scale instead of {found.before:.2g}, so there is more than one difference",
                Tone.WARN,
            )

    def _left(self, present: float, absent: float) -> str:
        if absent >= present:
            return "no output shows the error"
        return (
            f"with the reference's value there, the worst element of the outputs is off by {absent:.2g} of its scale "
            f"instead of {present:.2g}"
        )

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
        blamed = {name: number for number, name in enumerate(self.culprits)}
        last = len(blamed)
        order = sorted(
            range(len(rows)), key=lambda row: (blamed.get(self.layers[row].name, last), *_rank(self.layers[row]))
        )
        return Table(
            head,
            rows,
            right=(3, 4, 5, 6),
            rows_in_terminal=tuple(order[:_ROWS_IN_TERMINAL]),
            places=(Places(0, "tensor", tuple(layer.name for layer in self.layers)),),
            worst_first=tuple(order),
            bars=(Bars(4, tuple(_used(layer) for layer in self.layers), "share of the allowed difference"),),
        )


def _used(layer: Layer) -> tuple[float, ...]:
    """Returns the share that the layer's own difference has of the allowed one; none if it is unknown."""
    return () if layer.own is None or not layer.allowed else (layer.own / layer.allowed,)


def _off(layer: Layer) -> str:
    if layer.own is None:
        small = (
            f"its worst element is off by {layer.inherited:.2g} of its scale"
            if layer.inherited
            else "the graphs differ there"
        )
        return layer.reason or small
    explained = f"but rounding explains only {layer.allowed:.2g}"
    return f"its worst element is off by {layer.own:.2g} of its scale on the reference's own inputs, {explained}"


def _grown(layer: Layer) -> str:
    how = "from nothing" if layer.growth is None else f"by a factor of {layer.growth:.2g}"
    return f"{layer.name} ({layer.op}, {how} to {layer.inherited:.2g})"


# The order of verdicts in the table of a terminal: the worst first.
_ORDER = (
    "own error", "own error, not followed", "own error, slight", "rounding", "computed otherwise", "inherited", "equal",
)  # fmt: skip


def _rank(layer: Layer) -> tuple[int, float]:
    return (_ORDER.index(layer.verdict) if layer.verdict in _ORDER else 0, -(layer.growth or 0.0))


_NAMED = 3
"""Layers that one line names. A choice."""
_INPUTS_IN_TERMINAL = 8
"""Rows of each table in a terminal. A choice: a third of a screen."""


@dataclass(frozen=True)
class OneInput:
    """The result on one input: how many tensors were compared, how many of them differ by more than rounding explains,
    the largest difference relative to a tensor's scale, and the first layer with an error of its own ("" if none)."""

    input: str
    pairs: int
    differing: int
    worst: float
    first: str
    op: str


@dataclass(frozen=True)
class FirstSeen:
    """A layer with an error of its own: the first input that shows the error, the layer's own difference there, and how
    many inputs show the error."""

    name: str
    op: str
    input: str
    own: float
    count: int


@dataclass(frozen=True)
class LayersByInput(Part):
    """The layers on several inputs. `inputs` are in the order of the inputs, `layers` in the order in which they were
    found."""

    title = "Layers by input"

    inputs: tuple[OneInput, ...]
    layers: tuple[FirstSeen, ...]
    note: str = ""

    @property
    def first(self) -> str:
        """The first input on which a layer has an error of its own; empty if there is none."""
        return next((one.input for one in self.inputs if one.first), "")

    def line(self) -> str:
        bad = sum(bool(one.first) for one in self.inputs)
        if not bad:
            return f"no layer adds an error on {several(len(self.inputs), 'input')}"
        names = first_few([f"{one.name} ({one.op})" for one in self.layers], _NAMED)
        return f"a layer adds an error on {bad} of {several(len(self.inputs), 'input')}: {names}"

    def blocks(self) -> Iterator[Block]:
        rows = tuple(
            (one.input, str(one.pairs), str(one.differing), f"{one.worst:.2g}", " ".join((one.first, one.op)).strip())
            for one in self.inputs
        )
        bad = [at for at, one in enumerate(self.inputs) if one.first]
        fine = [at for at, one in enumerate(self.inputs) if not one.first]
        yield Table(
            ("input", "tensors", "differ", "largest difference", "first error"),
            rows,
            right=(1, 2, 3),
            rows_in_terminal=tuple(sorted([*bad, *fine][:_INPUTS_IN_TERMINAL])),
        )
        if not self.layers:
            yield Text("no layer adds an error on any of these inputs", Tone.GOOD)
        else:
            yield Text(f"first on {self.first}", Tone.BAD)
            yield Table(
                ("layer that errs", "operator", "first on", "own difference", "inputs"),
                tuple((x.name, x.op, x.input, f"{x.own:.2g}", f"{x.count} of {len(rows)}") for x in self.layers),
                right=(3, 4),
                rows_in_terminal=tuple(range(min(len(self.layers), _INPUTS_IN_TERMINAL))),
                places=(Places(0, "tensor", tuple(x.name for x in self.layers)),),
            )
        if self.note:
            yield Text(self.note, Tone.WARN)


_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class ValueRow:
    """One tensor. `roles` are `input` and `output`; an intermediate tensor has no role. `path` are the bodies around
    it.

    `shapes` has one shape for each array: a sequence, or a tensor in a loop, may have several arrays or none.
    `histogram` counts the finite elements between `statistics.min` and `max` in bins of equal width. For strings, and
    if no statistics were requested, `histogram` is empty and `statistics` is None.
    """

    name: str
    roles: tuple[str, ...]
    path: tuple[str, ...]
    operator: str
    dtype: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    statistics: Statistics | None = None
    histogram: tuple[int, ...] = ()


@dataclass(frozen=True)
class Values(Part):
    """The tensors of one run. `refused` are tensors that could not be read, with the reason. `moved` are graph outputs
    that change when intermediate tensors are made outputs, too: the runtime then fuses fewer nodes."""

    title = "Values"

    model: str
    runtime: str
    provider: str
    runs: int
    rows: tuple[ValueRow, ...]
    refused: dict[str, str]
    moved: dict[str, str]

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                ("model", self.model),
                ("runtime", f"{self.runtime}, {self.provider}"),
                ("tensors", f"{len(self.rows):,}, read in {several(self.runs, 'run')}"),
            ]
        )
        places = (Places(0, "tensor", tuple(row.name for row in self.rows)),)
        if any(row.statistics for row in self.rows):
            yield Table(
                ("tensor", "dtype and shape", "min", "mean", "max", "std", "odd", "histogram"),
                tuple((*_named(row), *_counted(row)) for row in self.rows),
                right=(2, 3, 4, 5),
                places=places,
                worst_first=tuple(sorted(range(len(self.rows)), key=lambda row: _harm(self.rows[row]))),
            )
        else:
            rows = tuple((*_named(row), " ".join(row.roles) or row.operator) for row in self.rows)
            yield Table(("tensor", "dtype and shape", "is"), rows, places=places)
        for name, why in self.moved.items():
            yield Text(f"output {name} changes when intermediate tensors are read: {why}", Tone.WARN)
        if self.refused:
            yield Table(("not read", "why"), tuple(self.refused.items()))


def _harm(row: ValueRow) -> tuple[bool, bool]:
    """Returns a key that sorts tensors with NaN first, then those with infinities; the others keep their order."""
    seen = row.statistics
    return seen is None or not seen.nan, seen is None or not seen.inf


def _named(row: ValueRow) -> tuple[str, str]:
    return row.name, f"{row.dtype}{_shape(row)}" if row.shapes else f"{row.dtype}, {_none(row)}"


def _none(row: ValueRow) -> str:
    return "never computed" if row.path else "absent" if row.kind == "absent" else "an empty sequence"


def _shape(row: ValueRow) -> str:
    first, *others = row.shapes
    if row.kind != "list":
        return dims(first)
    same = dims(first) if all(shape == first for shape in others) else "[…]"
    return f"{same}, {len(row.shapes)} times"


def _counted(row: ValueRow) -> tuple[str, ...]:
    found = row.statistics
    if found is None:
        return ("",) * 6
    return (number(found.min), number(found.mean), number(found.max), number(found.std), found.oddities(), bars(row))


def bars(row: ValueRow) -> str:
    """Returns the histogram as text: the highest bin is a full block, an empty bin a blank."""
    most = max(row.histogram, default=0)
    return "".join(_BARS[-(-count * len(_BARS) // most) - 1] if count else " " for count in row.histogram)
