"""The result of a simplification: the rewrites that fired and those that were refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Facts, Part, Places, Table, Text, Tone

TIDYING = "pass: "
"""Prefix of the entries made by passes, which always run; rules can be switched off."""


@dataclass(frozen=True)
class Entry:
    """One rewrite that fired or was refused. `rule` is the rule or pass, `why_not` the reason of a refusal. `gone` are
    the operators of the removed nodes, `made` the operators of the new nodes; `gone_names` and `made_names` are the
    names of these nodes. A node without a name is called after its first result."""

    id: int
    rule: str
    where: str
    why_not: str = ""
    gone: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    gone_names: tuple[str, ...] = ()
    made_names: tuple[str, ...] = ()

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
            yield _by_rule(self.fired)
        else:
            yield Text("nothing to do")
        for entry in self.switched_off:
            yield Text(f"switched off {entry.rule} at {entry.where}: {entry.why_not}", Tone.WARN)
        if self.refused:
            groups = tuple(_first_and_count(self.refused))
            rows = tuple((f"{e.rule}: {e.why_not}", n) for e, n in groups)
            yield Table(("refused", "times"), rows, right=(1,), places=_firsts([entry for entry, _ in groups]))
        yield from (Text(note) for note in self.notes)


def _by_rule(entries: Sequence[Entry]) -> Table:
    """Counts how often each rule fired, the most frequent first; a page links to the first place of each."""
    counts = Counter(entry.rule for entry in entries)
    firsts = {entry.rule: entry for entry in reversed(entries)}
    rows = sorted(counts.items(), key=lambda item: -item[1])
    places = _firsts([firsts[rule] for rule, _ in rows])
    return Table(("rule", "times"), tuple((rule, str(count)) for rule, count in rows), right=(1,), places=places)


def _firsts(entries: Sequence[Entry]) -> tuple[Places, ...]:
    return (Places(0, "node", tuple(entry.where for entry in entries)),)


def _first_and_count(entries: tuple[Entry, ...]) -> Iterator[tuple[Entry, str]]:
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.rule, entry.why_not), []).append(entry)
    for group in groups.values():
        yield group[0], str(len(group))
