"""The result of a simplification: the rewrites that fired and those that were refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.report.base import Block, Facts, Part, Table, Text, Tone

TIDYING = "pass: "
"""Prefix of the entries made by passes, which always run; rules can be switched off."""


@dataclass(frozen=True)
class Entry:
    """One rewrite that fired or was refused. `rule` is the rule or pass, `why_not` the reason of a refusal. `gone` are
    the operators of the removed nodes, `made` the operators of the new nodes."""

    id: int
    rule: str
    where: str
    why_not: str = ""
    gone: tuple[str, ...] = ()
    made: tuple[str, ...] = ()

    @property
    def is_rewrite(self) -> bool:
        """Whether a rule made the entry, so that it can be switched off by rule and place; False for passes."""
        return not self.rule.startswith(TIDYING)


@dataclass(frozen=True)
class Simplification(Part):
    """The result of a simplification. Node counts include subgraphs and functions, but not Constant nodes.
    `switched_off` are rewrites that were undone because the model differed after them."""

    title = "Simplification"

    nodes_before: int
    nodes_after: int
    initializers_before: int
    initializers_after: int
    fired: tuple[Entry, ...]
    refused: tuple[Entry, ...]
    rounds: int
    notes: tuple[str, ...] = ()
    switched_off: tuple[Entry, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield Facts(
            (
                ("nodes", f"{self.nodes_before} → {self.nodes_after}"),
                ("initializers", f"{self.initializers_before} → {self.initializers_after}"),
            )
        )
        if self.fired:
            yield Table(("rule", "times"), _counted(self.fired), right=(1,))
        else:
            yield Text("nothing to do")
        for entry in self.switched_off:
            yield Text(f"switched off {entry.rule} at {entry.where}: {entry.why_not}", Tone.WARN)
        if self.refused:
            rows = tuple((f"{e.rule}: {e.why_not}", n) for e, n in _first_and_count(self.refused))
            yield Table(("refused", "times"), rows, right=(1,))
        yield from (Text(note) for note in self.notes)


def _counted(entries: tuple[Entry, ...]) -> tuple[tuple[str, str], ...]:
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.rule] = counts.get(entry.rule, 0) + 1
    return tuple((rule, str(count)) for rule, count in sorted(counts.items(), key=lambda item: -item[1]))


def _first_and_count(entries: tuple[Entry, ...]) -> Iterator[tuple[Entry, str]]:
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.rule, entry.why_not), []).append(entry)
    for group in groups.values():
        yield group[0], str(len(group))
