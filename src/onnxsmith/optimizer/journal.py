"""Records a simplification: the rewrites that fired, and the refusals."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base.report.parts.edits import TIDYING, Entry

_Refusal = tuple[str, str, str]
"""A rule's id, the place and the reason of a refusal."""

Place = tuple[str, str]
"""A rule's id and the place where it fires. It identifies a rewrite in every run."""


@dataclass
class Journal:
    """The rewrites, numbered in the order in which they fired, and the refusals, once for each rule, place and reason.

    The journal also decides whether a rewrite may fire: it allows at most `limit` rewrites, and none that is
    `switched_off`. So a part of a run can be repeated.
    """

    limit: float = math.inf
    switched_off: frozenset[Place] = frozenset()
    fired: list[Entry] = field(default_factory=list)
    made: int = 0
    _refused: dict[_Refusal, Entry] = field(default_factory=dict)
    _by_opset: set[_Refusal] = field(default_factory=set)
    _in_this_round: set[_Refusal] = field(default_factory=set)

    def fire(self, rule: str, where: str) -> bool:
        """Notes a rewrite that is about to be made; returns False if it may not be made."""
        if self.made >= self.limit or (rule, where) in self.switched_off:
            return False
        self.made += 1
        self.fired.append(Entry(len(self.fired), rule, where))
        return True

    def detail(self, gone: Sequence[ir.Node], made: Sequence[ir.Node] = ()) -> None:
        """Notes the operators and the names of the removed and of the new nodes for the last rewrite."""
        last = self.fired[-1]
        self.fired[-1] = Entry(
            last.id,
            last.rule,
            last.where,
            gone=tuple(node.op_type for node in gone),
            made=tuple(node.op_type for node in made),
            gone_names=tuple(map(_named, gone)),
            made_names=tuple(map(_named, made)),
        )

    def tidy(self, title: str, where: str) -> None:
        """Notes a step of a pass that always runs and is not a rewrite, such as removing unused nodes."""
        self.fired.append(Entry(len(self.fired), f"{TIDYING}{title}", where))

    def refuse(self, rule: str, where: str, why: str, *, by_opset: bool = False) -> None:
        """Notes a refusal. `by_opset`: a newer opset would allow the rewrite."""
        refusal = (rule, where, why)
        self._in_this_round.add(refusal)
        if by_opset:
            self._by_opset.add(refusal)
        if refusal not in self._refused:
            self._refused[refusal] = Entry(len(self._refused), *refusal)

    def begin_round(self) -> None:
        """Begins a round, in which every refusal that still holds is made again."""
        self._in_this_round.clear()

    def forget_places_but(self, places: Collection[str]) -> None:
        """Drops the refusals by the opset at other places than these: what they would change is no longer there."""
        self._in_this_round = {one for one in self._in_this_round if one[1] in places}

    @property
    def refused(self) -> tuple[Entry, ...]:
        """The refusals, as report entries. Those by the opset recommend a newer one, so that only those of the last
        round count, which saw the final graph."""
        return tuple(
            entry for key, entry in self._refused.items() if key not in self._by_opset or key in self._in_this_round
        )


def _named(node: ir.Node) -> str:
    return node.name or next((value.name for value in node.outputs if value.name), "")
