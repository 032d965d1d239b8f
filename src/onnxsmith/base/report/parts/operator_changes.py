"""The operators that a simplification removed and added, rule by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text
from onnxsmith.base.report.parts.simplification import Entry


@dataclass(frozen=True)
class OperatorChanges(Part):
    """Node counts by operator, before and after; `by_rule` has the change in each count for each rule."""

    title = "Difference"

    before: dict[str, int]
    after: dict[str, int]
    by_rule: dict[str, dict[str, int]]

    def blocks(self) -> Iterator[Block]:
        changed = [op for op in sorted({*self.before, *self.after}) if self.before.get(op, 0) != self.after.get(op, 0)]
        if not changed:
            yield Text("the same operators as before")
            return
        counts = ((op, self.before.get(op, 0), self.after.get(op, 0)) for op in changed)
        rows = tuple((op, str(old), str(new), f"{new - old:+}") for op, old, new in counts)
        yield Table(("operator", "before", "after", "change"), rows, right=(1, 2, 3))
        yield Table(("rule", "removed and added"), tuple((rule, _listed(by)) for rule, by in self.by_rule.items()))


def _listed(changes: dict[str, int]) -> str:
    return ", ".join(f"{change:+} {op}" for op, change in sorted(changes.items()) if change) or "no change in number"


def operator_changes(before: dict[str, int], after: dict[str, int], fired: Iterable[Entry]) -> OperatorChanges:
    """Makes the part from the node counts before and after, and the rewrites that fired."""
    by_rule: dict[str, Counter[str]] = {}
    for entry in fired:
        if entry.gone or entry.made:
            changes = by_rule.setdefault(entry.rule, Counter())
            changes.update(entry.made)
            changes.subtract(entry.gone)
    return OperatorChanges(before, after, {rule: dict(changes) for rule, changes in by_rule.items()})
