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


@dataclass(frozen=True)
class Precision(Part):
    """`nodes` of the model, `candidates` that could be narrow, `kept` that must not. `fixed` says why others stay in
    float32 in any case: reason → operator → how many. `checked` kept nodes are known to be needed: without any one of
    them the rest is out of tolerance. `before` is the worst difference with nothing kept, `after` with the list."""

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
    notes: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield facts(
            (
                ("nodes", f"{self.nodes:,}, {self.candidates:,} of them can be {self.to}"),
                ("kept in float32", f"{len(self.kept):,}"),
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
