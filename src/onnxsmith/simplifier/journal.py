"""What fired where, and what was refused and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnxsmith.report.parts.simplification import Entry


@dataclass
class Journal:
    """Rewrites in the order in which they fired, numbered; refusals once for each rule, place and reason."""

    fired: list[Entry] = field(default_factory=list)
    _refused: dict[tuple[str, str, str], Entry] = field(default_factory=dict)

    def fire(self, rule: str, where: str) -> None:
        """Notes a rewrite."""
        self.fired.append(Entry(len(self.fired), rule, where))

    def refuse(self, rule: str, where: str, why: str) -> None:
        """Notes a refusal."""
        self._refused.setdefault((rule, where, why), Entry(len(self._refused), rule, where, why))

    @property
    def refused(self) -> tuple[Entry, ...]:
        """The refusals."""
        return tuple(self._refused.values())
