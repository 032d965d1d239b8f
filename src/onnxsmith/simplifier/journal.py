"""What fired where, and what was refused and why."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from onnxsmith.report.parts.simplification import TIDYING, Entry

Place = tuple[str, str]
"""A rule's id and where it fires: a rewrite, the same from one run to the next."""


@dataclass
class Journal:
    """Rewrites in the order in which they fired, numbered; refusals once for each rule, place and reason.

    It is also the gate: no more than `limit` fire, and none of those `switched_off`, so that a run can be repeated in
    part.
    """

    limit: float = math.inf
    switched_off: frozenset[Place] = frozenset()
    fired: list[Entry] = field(default_factory=list)
    made: int = 0
    _refused: dict[tuple[str, str, str], Entry] = field(default_factory=dict)

    def fire(self, rule: str, where: str) -> bool:
        """Notes a rewrite that is about to be made; False when it may not."""
        if self.made >= self.limit or (rule, where) in self.switched_off:
            return False
        self.made += 1
        self.fired.append(Entry(len(self.fired), rule, where))
        return True

    def detail(self, gone: Iterable[str], made: Iterable[str] = ()) -> None:
        """Says of the rewrite that fired last which operators went and which came."""
        self.fired[-1] = replace(self.fired[-1], gone=tuple(gone), made=tuple(made))

    def tidy(self, title: str, where: str) -> None:
        """Notes something that is no rewrite and always done, such as removing what nothing depends on."""
        self.fired.append(Entry(len(self.fired), f"{TIDYING}{title}", where))

    def refuse(self, rule: str, where: str, why: str) -> None:
        """Notes a refusal."""
        self._refused.setdefault((rule, where, why), Entry(len(self._refused), rule, where, why))

    @property
    def refused(self) -> tuple[Entry, ...]:
        """The refusals."""
        return tuple(self._refused.values())
