"""Records of the judge as tables, and whether the targets are reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judging.peers import PEERS

Record = Mapping[str, Any]
SEEN = 0.995
TURNED_AWAY = 0.01
NOT_JUDGED = 0.02
LEAST_FAULTS, LEAST_MODELS, LEAST_PAIRS, LEAST_VALID = 100, 40, 500, 300


@dataclass(frozen=True)
class Outcome:
    """The text of a suite's tables, and the targets that were missed, each in words."""

    text: str
    missed: tuple[str, ...]


def markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table, the first column to the left."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
    return "\n".join(lines)


def share(part: int, whole: int) -> str:
    """A part of a whole, as a count and per cent."""
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "0 of 0"


def faults(records: Sequence[Record], whole: bool) -> Outcome:
    """Visible faults by form and by kind: different, cannot tell, equal (missed), failed; and what the peers saw."""
    visible = [one for one in records if one.get("status") == "visible" and "verdict" in one]
    rows = []
    for label, belongs in _groups(visible):
        chosen = [one for one in visible if belongs(one)]
        counts = Counter(one["verdict"] for one in chosen)
        ours = [share(counts["different"], len(chosen)), counts["cannot-tell"], counts["done"], counts["failed"]]
        rows.append([label, *ours, *(_peer(chosen, peer, "different") for peer in PEERS)])
    head = ("visible faults", "different", "cannot tell", "EQUAL", "failed", *(f"{peer}: different" for peer in PEERS))
    lines = [markdown(head, rows), "", _not_visible(records), ""]
    lines += [
        f"equal: {one['case']}: {one['place']} ({one['ratio']:.3g} times noise)" for one in visible if _equal(one)
    ]
    seen = sum(one["verdict"] in ("different", "cannot-tell") for one in visible)
    told = sum(one["verdict"] != "failed" for one in visible)
    models = len({one["case"].split("/")[0] for one in visible})
    lines.append(
        f"{models} models; seen or cannot tell: {share(seen, len(visible))}, of those judged {share(seen, told)}"
    )
    missed = [] if visible and seen >= SEEN * len(visible) else [f"faults: {share(seen, len(visible))}, not {SEEN:.1%}"]
    missed += [f"faults: {sum(map(_equal, visible))} called equal"] if any(map(_equal, visible)) else []
    lines += _broken(records)
    missed += _not_judged(records)
    missed += _too_few(whole, ("faults", len(visible), LEAST_FAULTS), ("models with a fault", models, LEAST_MODELS))
    return Outcome("\n".join(lines), tuple(missed))


def _equal(record: Record) -> bool:
    return bool(record.get("verdict") == "done")


def _groups(records: Sequence[Record]) -> list[tuple[str, Callable[[Record], bool]]]:
    parts = [one["case"].split("/") for one in records]
    groups: list[tuple[str, Callable[[Record], bool]]] = [("all", lambda _: True)]
    for place in (1, 2):
        names = sorted({part[place] for part in parts})
        groups += [(name, lambda one, p=place, n=name: one["case"].split("/")[p] == n) for name in names]
    return groups


def _peer(records: Sequence[Record], peer: str, verdict: str) -> str:
    asked = [one for one in records if one.get("peers", {}).get(peer) in ("equal", "different")]
    return share(sum(one["peers"][peer] == verdict for one in asked), len(asked))


def _not_visible(records: Sequence[Record]) -> str:
    counts: Counter[str] = Counter()
    for one in records:
        counts.update(one.get("tried") or {})
    total = counts["visible"] + counts["faint"] + counts["invisible"]
    said = ", ".join(f"{name} {share(counts[name], total)}" for name in ("visible", "faint", "invisible"))
    return f"places tried: {said}; {counts['invalid']} left the model invalid"


def equivalent(records: Sequence[Record], whole: bool) -> Outcome:
    """Settled pairs by kind: equal, cannot tell, different (wrong), failed; and what the peers said."""
    judged = [one for one in records if "verdict" in one]
    settled = [one for one in judged if one["status"] == "settled"]
    rows = []
    for kind in ("all", *sorted({one["case"].split("/")[0] for one in settled})):
        chosen = [one for one in settled if kind == "all" or one["case"].split("/")[0] == kind]
        counts = Counter(one["verdict"] for one in chosen)
        ours = [share(counts["done"], len(chosen)), counts["cannot-tell"], counts["different"], counts["failed"]]
        rows.append([kind, *ours, *(_peer(chosen, peer, "different") for peer in PEERS)])
    head = (
        "equivalent pairs",
        "equal",
        "cannot tell",
        "DIFFERENT",
        "failed",
        *(f"{peer}: different" for peer in PEERS),
    )
    open_ = Counter(one["verdict"] for one in judged if one["status"] == "unsettled")
    lines = [markdown(head, rows), ""]
    lines.append(f"not settled (further apart than noise explains): {sum(open_.values())}, of them {dict(open_)}")
    lines.append(f"not made: {sum(one['status'] == 'not made' for one in records)}")
    wrong = [one for one in settled if one["verdict"] == "different"]
    lines += [f"different: {one['case']} ({one['ratio']:.3g}): {one['said']}" for one in wrong]
    missed = [f"equivalent: {len(wrong)} called different"] if wrong or not settled else []
    lines += _broken(records)
    missed += _not_judged(records)
    return Outcome("\n".join(lines), (*missed, *_too_few(whole, ("equivalent pairs", len(settled), LEAST_PAIRS))))


def valid(records: Sequence[Record], whole: bool) -> Outcome:
    """Valid models by source and command: answered, or turned away."""
    rows, lines = [], []
    ran = [one for one in records if one.get("status") == "runs"]
    away = [one for one in ran if "failed" in (one["compare"], one["simplify"])]
    for source in sorted({one["case"].split("/")[0] for one in ran}):
        chosen = [one for one in ran if one["case"].split("/")[0] == source]
        counts = [
            share(sum(one[command] == "failed" for one in chosen), len(chosen)) for command in ("compare", "simplify")
        ]
        other = [sum(one[command] not in ("done", "failed") for one in chosen) for command in ("compare", "simplify")]
        rows.append([source, len(chosen), *counts, *other])
    head = (
        "valid models",
        "run",
        "compare: turned away",
        "simplify: turned away",
        "compare: not equal",
        "simplify: not equal",
    )
    lines = [markdown(head, rows), ""]
    lines += [
        f"{one['case']}: compare {one['compare']}, simplify {one['simplify']}: {one['said']}"
        for one in ran
        if _odd(one)
    ]
    missed = [] if ran and len(away) <= TURNED_AWAY * len(ran) else [f"valid: turned away {share(len(away), len(ran))}"]
    lines += _broken(records)
    missed += _not_judged(records)
    return Outcome("\n".join(lines), (*missed, *_too_few(whole, ("valid models", len(ran), LEAST_VALID))))


def _odd(record: Record) -> bool:
    return record["compare"] != "done" or record["simplify"] != "done"


def _broken(records: Sequence[Record]) -> list[str]:
    """What gave no answer at all, a line each: a crash, or more than the time limit."""
    return [f"not judged: {one['case']}: {one.get('why', '')}" for one in records if one.get("status") == "broken"]


def _not_judged(records: Sequence[Record]) -> list[str]:
    """A suite that leaves out more than a few cases has not been run."""
    broken = len(_broken(records))
    return [f"not judged: {share(broken, len(records))}"] if broken > NOT_JUDGED * len(records) else []


def _too_few(whole: bool, *figures: tuple[str, int, int]) -> list[str]:
    """A sample need not reach the numbers that a whole run has to."""
    return [f"{name}: {count}, not {least}" for name, count, least in figures if whole and count < least]
