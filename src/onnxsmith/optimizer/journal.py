"""Records a simplification: the rewrites that fired, and the refusals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base.report.parts.edits import TIDYING, Entry

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
    _refused: dict[tuple[str, str, str], Entry] = field(default_factory=dict)

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

    def refuse(self, rule: str, where: str, why: str) -> None:
        """Notes a refusal."""
        if (rule, where, why) not in self._refused:
            self._refused[rule, where, why] = Entry(len(self._refused), rule, where, why)

    @property
    def refused(self) -> tuple[Entry, ...]:
        """The refusals, as report entries."""
        return tuple(self._refused.values())


def _named(node: ir.Node) -> str:
    return node.name or next((value.name for value in node.outputs if value.name), "")
