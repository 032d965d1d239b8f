"""The nodes that have to stay in float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.report.parts._text import size
from onnxsmith.base.words import first_few, several


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
    """Counts in the file of the mixed model: all `nodes`, nodes with a `narrow` output, `casts` between dtypes, float
    `weights`, and the `weights_narrow` among them."""

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
            yield Text(f"in float32 in any case: {names}: {reason}")
        yield from (Text(note, Tone.WARN) for note in self.notes)

    def _search(self) -> str:
        tried = f"{several(self.tries, 'variant')} tried in {self.seconds:.1f} s, {several(self.sessions, 'session')}"
        return f"{tried}; {self.remembered} asked for again"

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
            return Text("none can be left out: without any one of them the rest is out of tolerance", Tone.GOOD)
        return Text(f"{self.checked} of {needed} are known to be needed; there were no tries left", Tone.WARN)


NO_KERNEL = "the runtime has no kernel"
"""The reason for a node that is on the keep-list without a search."""
