"""What simplification did, and what it refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.report.base import Block, Facts, Part, Table, Text, Tone

TIDYING = "pass: "
"""What the entries begin with that are no choice: what nothing depends on is removed."""


@dataclass(frozen=True)
class Entry:
    """One rewrite that fired, or one that was refused: by which rule or pass, where, and why not. `gone` and `made` are
    the operators of the nodes that it replaced and of those that it put there."""

    id: int
    rule: str
    where: str
    why_not: str = ""
    gone: tuple[str, ...] = ()
    made: tuple[str, ...] = ()

    @property
    def is_rewrite(self) -> bool:
        """Whether it is a rewrite that can be switched off by its rule and place, and no tidying up."""
        return not self.rule.startswith(TIDYING)


@dataclass(frozen=True)
class Simplification(Part):
    """Node counts leave out Constant nodes and include subgraphs and functions. `switched_off` are rewrites after which
    the model differed, which are not in it."""

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
