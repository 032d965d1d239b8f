"""Describes models in narrower numbers: the layers that became narrower, and those that stay in float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.words import change, first_few, of_one, several, size, told_apart

_MOST = 30
"""Layers that a terminal shows. A choice."""
_NAMED = 3
"""Layers and nodes that one line names. A choice."""
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
    is_lossy = True
    recorded = (
        "to",
        "method",
        "score",
        "better",
        "before",
        "after",
        "bound",
        "budget",
        "samples",
        "calibrated",
        "labelled",
        "measured",
        "broken",
        "evaluations",
        "also",
        "notes",
    )

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
    declared: tuple[str, ...] = ()
    """Sentences on declarations of the given model that were wrong, and are corrected in the file."""

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
        said = [self._changed()]
        if self.eight:
            said[0] += f" ({len(self.eight)} with 8 bits)"
        refused = self.also.get("on onnxruntime", "")
        if refused:
            said.append(f"onnxruntime does not load it ({refused.removeprefix('refused: ')})")
        if "measured on" in self.also:
            said.append(f"{self.also['measured on']} runs it")
        said += self._left()
        if self.after is not None:
            said.append(f"{self.score} {change(self.before, self.after, 4)}{self._against()}")
        if self.bytes_after is not None:
            said.append(f"{of_one(self.bytes_after / max(1, self.bytes_before))} of the size")
        if self.times:
            said.append(self.times)
        said += [f"{name}: {value}" for name, value in self.also.items() if _is_bad(name, value)]
        return "; ".join((", ".join(said), *self.declared))

    def _changed(self) -> str:
        """Counts the layers that compute in the narrow dtype apart from those that only store their weights in it."""
        alone = len(self.weights)
        changed = len(self.layers) - len(self.kept) - alone
        count = len(self.layers) + sum(one.count for one in self.left)
        if not alone:
            return f"{changed} of {several(count, 'layer')} became {self.to}"
        dtype = self.to.partition("-")[0]
        verb = "stores only its weights" if alone == 1 else "store only their weights"
        if not changed:
            return f"no layer computes in {dtype}; {alone} of {count} {verb} in {dtype}"
        compute = "computes" if changed == 1 else "compute"
        return f"{changed} of {several(count, 'layer')} {compute} in {dtype}; {alone} {verb} in {dtype}"

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

    def line(self) -> str:
        groups = ((self.kept, "unchanged"), (self.weights, "with narrow weights only"))
        named = [
            f"{len(group)} {what} ({first_few([one.name for one in group], _NAMED)})" for group, what in groups if group
        ]
        sizes = f"{size(self.bytes_before)} → {size(self.bytes_after)}" if self.bytes_after else ""
        worst = max(self.layers, key=lambda one: one.damage or 0.0, default=None)
        most = (
            f"layer with the largest error: {worst.name}, {worst.damage:.2g}"
            if worst is not None and worst.damage
            else ""
        )
        return "; ".join(text for text in (sizes, *named, most) if text) or self.method

    def blocks(self) -> Iterator[Block]:
        known = [one for one in (self.before, self.after, self.bound) if one is not None]
        texts = dict(zip(known, told_apart(*known), strict=True))
        after = "of the given model" if self.after is None else self._against().strip()
        score = texts[self.before] if self.after is None else change(self.before, self.after)
        yield facts(
            (
                ("method", self.method),
                (f"{self.score}, {self.better} is better", f"{score} {after}".strip()),
                ("worst that the budget allows", f"{texts[self.bound]} ({self.budget})"),
                ("samples", f"{self.samples:,} tested, {self.calibrated:,} for calibration"),
                ("size", f"{size(self.bytes_before)} → {size(self.bytes_after)}" if self.bytes_after else ""),
                ("time", self.times),
                *self.also.items(),
                ("keep-lists evaluated", f"{self.evaluations:,}"),
            )
        )
        if self.broken:
            yield Text(f"the outputs of {several(self.broken, 'sample')} are not finite", Tone.BAD)
        if self.kept:
            yield self._table("unchanged", self.kept)
        if self.weights:
            yield self._table("weights only", self.weights)
        if self.eight:
            yield self._table("8 bits", self.eight)
        whole = (one for one in self.layers if not one.kept and not one.weights and not one.eight)
        changed = sorted(whole, key=lambda one: -(one.damage or 0.0))
        if changed:
            yield self._table("changed, largest error first", tuple(changed))
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
            ("weights only", [f"{one.weights}" for one in order] if any(one.weights for one in order) else []),
            ("in 8 bits", [f"{one.eight}" for one in order] if any(one.eight for one in order) else []),
            ("weights", [size(one.nbytes) for one in order]),
            (self.score, list(told_apart(*(one.score for one in order)))),
            ("within budget", ["yes" if one.meets else "no" for one in order]),
        ]
        shown = [(head, cells) for head, cells in columns if cells]
        rows = tuple(zip(*(cells for _, cells in shown), strict=True))
        return Table(tuple(head for head, _ in shown), rows, right=tuple(range(len(shown) - 1)))

    def rows_in_terminal(self) -> int:
        """Returns the number of rows of a table that a terminal shows."""
        return _MOST


@dataclass(frozen=True)
class KeptNode:
    """One node of the keep-list. `own` is its own error in the narrow dtype, relative to the scale of its output, None
    if unknown. `range` is the range of its inputs and outputs. `without` is the model's error when only this node is
    removed from the list."""

    name: str
    op: str
    module: str
    source: str
    why: str
    own: float | None
    range: str
    without: str


@dataclass(frozen=True)
class InFile:
    """Counts in the file of the mixed model: `nodes` without Constants, nodes with a `narrow` output, `casts` between
    dtypes, float `weights`, and the `weights_narrow` among them."""

    nodes: int
    narrow: int
    casts: int
    weights: int
    weights_narrow: int


_FEW = 64
"""Bytes of weights whose dtype does not matter, such as a factor or an epsilon. A choice: 16 numbers in float32."""


@dataclass(frozen=True)
class Precision(Part):
    """The result of a search for the nodes that must stay in float32.

    Node counts: `nodes` of the model; `candidates` that could be narrow; `narrow` that became narrow; `computing`, the
    narrow nodes that do more than move or convert values; `other` nodes without float32. `kept` is the keep-list.
    `fixed` counts the nodes that can never be narrow: reason → operator → count. `checked` counts the kept nodes that
    are known to be needed: if any one of them is narrow, the model is out of tolerance.

    Weights: `weights` in float32, of which `weights_narrow` became narrow. `weights_bytes` and `weights_bytes_narrow`
    are their sizes in float32. `file` has the counts in the written file; None if none was written. `before` is the
    worst difference with an empty keep-list, `after` with this list.
    """

    title = "Precision"
    is_lossy = True
    recorded = ("to", "nodes", "candidates", "narrow", "kept", "tolerance", "before", "after", "checked", "notes")

    to: str
    nodes: int
    candidates: int
    kept: tuple[KeptNode, ...]
    fixed: dict[str, dict[str, int]]
    tolerance: str
    before: str
    after: str
    tries: int
    remembered: int
    sessions: int
    checked: int
    seconds: float = 0.0
    bytes_before: int | None = None
    bytes_after: int | None = None
    narrow: int = 0
    computing: int = 0
    other: int = 0
    weights: int = 0
    weights_narrow: int = 0
    weights_bytes: int = 0
    weights_bytes_narrow: int = 0
    notes: tuple[str, ...] = ()
    file: InFile | None = None

    @property
    def is_in_vain(self) -> bool:
        """Whether nothing was gained: no computing node became narrow, or none of the model's weights did."""
        return self.computing == 0 or (self.weights_bytes > _FEW and self.weights_narrow == 0)

    def summary(self) -> str:
        """Returns one line: how many nodes and weights became narrow, and why others did not."""
        kept = sum(one.why != NO_KERNEL for one in self.kept)
        rest = [
            f"{kept} stay in float32 for the tolerance" if kept else "",
            f"{len(self.kept) - kept} have no kernel" if len(self.kept) > kept else "",
            f"{self._fixed()} cannot be {self.to} ({self._operators()})" if self.fixed else "",
            f"{self.other} had no float32" if self.other else "",
        ]
        nodes = ", ".join(text for text in (f"{self.narrow} of {self.nodes} nodes became {self.to}", *rest) if text)
        if not self.weights:
            return f"{nodes}; no weights in float32"
        return f"{nodes}; {self.weights_narrow} of {several(self.weights, 'weight')} became {self.to}, {self._memory()}"

    def _memory(self) -> str:
        return f"{size(self.weights_bytes_narrow)} of {size(self.weights_bytes)}"

    def _fixed(self) -> int:
        return sum(sum(operators.values()) for operators in self.fixed.values())

    def _operators(self) -> str:
        return first_few(dict.fromkeys(op for operators in self.fixed.values() for op in operators), 3)

    def line(self) -> str:
        said = [
            f"{self.before} with all in {self.to}, {self.after} with {len(self.kept):,} kept, {self.tolerance} allowed"
        ]
        if self.kept:
            said.append(f"kept in float32: {first_few([one.name for one in self.kept], _NAMED)}")
        return "; ".join([*said, *([sizes] if (sizes := self._sizes()) else [])])

    def blocks(self) -> Iterator[Block]:
        yield facts(
            (
                ("nodes", f"{self.nodes:,}, {self.candidates:,} of them can be {self.to}"),
                (f"{self.to} now", f"{self.narrow:,}"),
                ("kept in float32", f"{len(self.kept):,}"),
                ("weights", f"{self.weights_narrow:,} of {self.weights:,} became {self.to}: {self._memory()}"),
                (f"all in {self.to}", self.before),
                ("with the list", self.after),
                ("allowed", self.tolerance),
                ("size", self._sizes()),
                ("in the file", self._in_file()),
                ("search", self._search()),
            )
        )
        if self.kept:
            yield self._table()
            yield self._minimal()
        for reason, operators in self.fixed.items():
            names = ", ".join(f"{count} {op}" for op, count in operators.items())
            yield Text(f"always in float32: {names}: {reason}")
        yield from (Text(note, Tone.WARN) for note in self.notes)

    def _search(self) -> str:
        tried = f"{several(self.tries, 'variant')} tried in {self.seconds:.1f} s, {several(self.sessions, 'session')}"
        return f"{tried}; {self.remembered} results reused"

    def _in_file(self) -> str:
        if self.file is None:
            return ""
        held = self.file
        weights = f"{held.weights_narrow:,} of {several(held.weights, 'weight')} in {self.to}"
        return f"{several(held.nodes, 'node')}, {held.narrow:,} in {self.to}, {several(held.casts, 'Cast')}; {weights}"

    def _sizes(self) -> str:
        if self.bytes_before is None or self.bytes_after is None:
            return ""
        return f"{size(self.bytes_before)} → {size(self.bytes_after)}"

    def _table(self) -> Table:
        rows = tuple(
            (
                node.name,
                node.op,
                " ".join(text for text in (node.module, f"({node.source})" if node.source else "") if text),
                "" if node.own is None else f"{node.own:.2g}",
                node.why,
                node.without,
            )
            for node in self.kept
        )
        return Table(
            ("node", "operator", "module and line", "own error", "why", "without it"),
            rows,
            right=(3,),
            places=(Places(0, "node", tuple(node.name for node in self.kept)),),
            worst_first=tuple(sorted(range(len(rows)), key=lambda row: -(self.kept[row].own or 0.0))),
        )

    def _minimal(self) -> Text:
        needed = sum(1 for node in self.kept if node.why != NO_KERNEL)
        if self.checked == needed:
            return Text(
                "every node of this list is needed: if one is removed, the model exceeds the tolerance", Tone.GOOD
            )
        return Text(
            f"{self.checked} of {needed} nodes are known to be needed; the tries ended before the others were checked",
            Tone.WARN,
        )


NO_KERNEL = "the runtime has no kernel"
"""The reason for a node that is on the keep-list without a search."""
