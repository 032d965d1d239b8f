"""Which nodes have to stay in float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.report.base import Block, Part, Table, Text, Tone, facts
from onnxsmith.report.parts._text import amount, size


@dataclass(frozen=True)
class KeptNode:
    """One node of the keep-list. `own` is what it errs by itself when it is narrow, relative to the scale of what it
    makes, None where that is not known; `range` is what it saw; `without` is what comes of the model when this node
    alone is left out of the list."""

    name: str
    op: str
    module: str
    source: str
    why: str
    own: float | None
    range: str
    without: str


_FEW = 64
"""Bytes of weights whose dtype matters to nobody: a factor, an epsilon."""


@dataclass(frozen=True)
class Precision(Part):
    """`nodes` of the model, `candidates` that could be narrow, `kept` that must not, `narrow` that became it, of which
    `computing` do more than move or convert. `fixed` says why others stay in float32 in any case: reason → operator →
    how many; `other` nodes had no float32. `weights` were float32, of which `weights_narrow` became narrow, with their
    bytes as they were in float32. `checked` kept nodes are known to be needed: without any one of them the rest is out
    of tolerance. `before` is the worst difference with nothing kept, `after` with the list."""

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

    @property
    def is_in_vain(self) -> bool:
        """Whether nothing was gained: no node that computes is narrow, or none of the weights that there are."""
        return self.computing == 0 or (self.weights_bytes > _FEW and self.weights_narrow == 0)

    def summary(self) -> str:
        """How much became narrow, and how much did not, in one line."""
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
        return f"{nodes}; {self.weights_narrow} of {amount(self.weights, 'weight')} became {self.to}, {self._memory()}"

    def _memory(self) -> str:
        return f"{size(self.weights_bytes_narrow)} of {size(self.weights_bytes)}"

    def _fixed(self) -> int:
        return sum(sum(operators.values()) for operators in self.fixed.values())

    def _operators(self) -> str:
        names = list(dict.fromkeys(op for operators in self.fixed.values() for op in operators))
        return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")

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
        tried = f"{amount(self.tries, 'variant')} tried in {self.seconds:.1f} s, {amount(self.sessions, 'session')}"
        return f"{tried}; {self.remembered} asked for again"

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
        return Table(("node", "operator", "module and line", "own error", "why", "without it"), rows, right=(3,))

    def _minimal(self) -> Text:
        needed = sum(1 for node in self.kept if node.why != NO_KERNEL)
        if self.checked == needed:
            return Text("none can be left out: without any one of them the rest is out of tolerance", Tone.GOOD)
        return Text(f"{self.checked} of {needed} are known to be needed; there were no tries left", Tone.WARN)


NO_KERNEL = "the runtime has no kernel"
"""Why a node is kept that was not searched for."""
