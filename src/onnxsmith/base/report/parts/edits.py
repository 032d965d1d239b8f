"""Describes how a model was changed: by the steps of an edit, of a simplification, and of a reduction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Places, Table, Text, Tone, facts
from onnxsmith.base.words import constants_change, first_few, several

_RULES = 3
"""Rules that one line names. A choice."""


@dataclass(frozen=True)
class Edits(Part):
    """The effect of each step, in order. `changed` are the outputs whose values the steps change on purpose, `new` the
    outputs that the original lacks. Outputs of both kinds were run, but not compared."""

    title = "Edits"
    recorded = ("steps", "changed", "new", "notes")

    steps: tuple[tuple[str, str], ...]
    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield Table(("", "step", "done"), tuple((str(i), *one) for i, one in enumerate(self.steps, 1)), right=(0,))
        if self.changed:
            yield Text(f"changed on purpose, so not compared with the original: {', '.join(self.changed)}")
        if self.new:
            yield Text(f"new outputs: {', '.join(self.new)}")
        for note in self.notes:
            yield Text(note)


@dataclass(frozen=True)
class StepList(Part):
    """Each step's name, its fields, and its description."""

    title = "Steps"

    steps: tuple[tuple[str, str, str], ...]

    def blocks(self) -> Iterator[Block]:
        yield Table(("step", "fields"), tuple((name, fields) for name, fields, _ in self.steps), is_key=True)
        for name, _, text in self.steps:
            yield Text(f"{name}: {text}")


@dataclass(frozen=True)
class Rewrites(Part):
    """The rewrites that fired, in order, and the refused rewrites with their reasons."""

    title = "Rewrites"

    fired: tuple[Entry, ...]
    refused: tuple[Entry, ...]

    def blocks(self) -> Iterator[Block]:
        if not self.fired and not self.refused:
            yield Text("none")
        if self.fired:
            rows = tuple((str(e.id), e.rule, e.where, _change(e)) for e in self.fired)
            yield Table(("number", "rule", "where", "what"), rows, right=(0,), places=_places(2, self.fired))
        if self.refused:
            cells = tuple((e.rule, e.where, e.why_not) for e in self.refused)
            yield Table(("refused", "where", "why"), cells, places=_places(1, self.refused))


def _places(column: int, entries: tuple[Entry, ...]) -> tuple[Places, ...]:
    return (Places(column, "node", tuple(entry.where for entry in entries)),)


def _change(entry: Entry) -> str:
    if not entry.gone and not entry.made:
        return ""
    return f"{', '.join(entry.gone) or 'nothing'} → {', '.join(entry.made) or 'nothing'}"


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
    """The result of a simplification. Node counts include subgraphs and functions, but not Constant nodes, which
    `constants_before` and `constants_after` count.
    `switched_off` are rewrites that were undone because the model differed after them. `misdeclared` counts the
    intermediate tensors that the file declared with a wrong shape or dtype."""

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
    misdeclared: int = 0
    constants_before: int = 0
    constants_after: int = 0

    def line(self) -> str:
        said = [f"{self.nodes_before:,} → {several(self.nodes_after, 'node')}"]
        rules = Counter(entry.rule for entry in self.fired if entry.is_rewrite).most_common()
        if rules:
            said.append("by " + first_few([f"{rule} ({count})" for rule, count in rules], _RULES))
        elif not self.fired:
            said.append("nothing to do")
        if self.refused:
            first = self.refused[0]
            rules_refused = list(dict.fromkeys(entry.rule for entry in self.refused))
            why = f" ({first.why_not})" if len(rules_refused) == 1 else ""
            said.append(f"{len(self.refused):,} refused: {first_few(rules_refused, _RULES)}{why}")
        return "; ".join(said)

    def blocks(self) -> Iterator[Block]:
        yield facts(
            (
                ("nodes", f"{self.nodes_before} → {self.nodes_after}"),
                ("Constant nodes", constants_change(self.constants_before, self.constants_after)),
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


@dataclass(frozen=True)
class Step:
    """One step: the number of `nodes` after it, and the number of models that it tried."""

    name: str
    nodes: int
    tries: int


@dataclass(frozen=True)
class Reduction(Part):
    """The result of a reduction. Node counts include bodies and functions, but not Constant nodes. `tries` counts the
    models by outcome. `remembered` counts the models whose outcome was known from an earlier try. `kept` lists the
    parts that could not be anonymised."""

    title = "Reduction"

    check: str
    failure: str
    inputs: str
    steps: tuple[Step, ...]
    tries: dict[str, int]
    remembered: int = 0
    confirmed: str = ""
    anonymised: bool = False
    kept: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield facts(
            (
                ("check", self.check),
                ("failure", self.failure),
                ("inputs", self.inputs),
                ("tries", f"{sum(self.tries.values())}: {self._ends()}"),
                ("confirmed", self.confirmed),
            )
        )
        rows = tuple((step.name, str(step.nodes), str(step.tries)) for step in self.steps)
        yield Table(("step", "nodes", "tries"), rows, right=(1, 2))
        if self.anonymised:
            yield Text("anonymised; still in the model: " + "; ".join(self.kept) if self.kept else "anonymised")

    def _ends(self) -> str:
        return ", ".join(f"{count} {end}" for end, count in self.tries.items()) or "none"
