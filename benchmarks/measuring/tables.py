"""Tables of records: one a class of models, a column a tool, and the models where onnxsmith is not the best.

Ratios are after over before; below 1 is less. A result that is wrong, invalid, refused or crashed has no figure of its
own: "right only" leaves it out, "failures as 1" counts it as the original, unchanged. Models that cannot be verified
are named and left out altogether.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from measuring.records import Record

FAILURES = ("wrong", "interface", "invalid", "refused", "crashed", "unverified")
GROWN = 1.01
OURS = "onnxsmith"


@dataclass(frozen=True)
class Row:
    """One model: its own record, and those of the tools by name."""

    original: Record
    tools: dict[str, Record]

    def right(self) -> dict[str, Record]:
        """The tools whose result is right."""
        return {tool: record for tool, record in self.tools.items() if record.status == "right"}


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean; NaN of nothing."""
    known = list(ratios)
    return math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan


def table(kind: str, rows: Sequence[Row], tools: Sequence[str]) -> str:
    """The table of one class as Markdown."""
    usable = [row for row in rows if row.original.status == "right"]
    lines = [f"### {kind}: {len(usable)} models", ""]
    lines += [f"cannot be verified: {row.original.model}: {row.original.error}" for row in rows if row not in usable]
    width = max(map(len, (title for title, _ in FIGURES)))
    lines.append(f"| {'figure':{width}} | " + " | ".join(tools) + " |")
    lines.append("| " + "-" * width + " | " + " | ".join("-" * len(tool) for tool in tools) + " |")
    for title, figure in FIGURES:
        cells = (figure(usable, tool).rjust(len(tool)) for tool in tools)
        lines.append(f"| {title:{width}} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(rows: Sequence[Row], tools: Sequence[str]) -> str:
    """One table for each figure that the documents show, a line a class, as Markdown."""
    kinds = list(dict.fromkeys(row.original.kind for row in rows))
    figures = dict(FIGURES)
    width = max(map(len, kinds), default=0) + len(" (000)")
    parts = []
    for title in SUMMARY:
        lines = [f"{title}:", "", f"| {'class':{width}} | " + " | ".join(tools) + " |"]
        lines.append("| " + "-" * width + " | " + " | ".join("-" * len(tool) for tool in tools) + " |")
        for kind in kinds:
            usable = [row for row in rows if row.original.kind == kind and row.original.status == "right"]
            cells = (figures[title](usable, tool).rjust(len(tool)) for tool in tools)
            lines.append(f"| {f'{kind} ({len(usable)})':{width}} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def behind(rows: Sequence[Row]) -> str:
    """The models where a right result of another tool has fewer nodes than ours, the worst first."""
    found: list[tuple[float, str]] = []
    for row in rows:
        right = row.right()
        if row.original.status != "right" or not right:
            continue
        least = min(_nodes(record) for record in right.values())
        ours = _nodes(right[OURS]) if OURS in right else _nodes(row.original)
        if ours > least:
            names = ", ".join(tool for tool, record in right.items() if _nodes(record) == least)
            failed = "" if OURS in right else f" ({row.tools[OURS].status})" if OURS in row.tools else " (not run)"
            model = f"{row.original.kind:9} {row.original.model:44} {_nodes(row.original):6}"
            found.append((ours / max(1, least), f"{model} {ours:6}{failed} {least:6} {names}"))
    head = f"{'class':9} {'model':44} {'before':>6} {'ours':>6} {'best':>6} whose"
    return "\n".join([head, *(line for _, line in sorted(found, key=lambda item: -item[0]))])


def failures(rows: Sequence[Row]) -> str:
    """A line for each result that was not right."""
    bad = [record for row in rows for record in row.tools.values() if record.status != "right"]
    return "\n".join(f"{r.kind:9} {r.model:44} {r.tool:14} {r.status:10} {r.error}" for r in bad)


def _nodes(record: Record) -> int:
    return record.nodes or 0


def _pairs(rows: Sequence[Row], tool: str) -> list[tuple[Record, Record]]:
    """Original and result, where the result is right."""
    return [(row.original, record) for row in rows if (record := row.right().get(tool)) is not None]


def _failed(rows: Sequence[Row], tool: str) -> str:
    return str(sum(tool in row.tools and row.tools[tool].status != "right" for row in rows))


def _count(status: str) -> Figure:
    return lambda rows, tool: str(sum(tool in row.tools and row.tools[tool].status == status for row in rows))


def _node_ratio(rows: Sequence[Row], tool: str) -> str:
    return f"{mean(_nodes(after) / _nodes(before) for before, after in _pairs(rows, tool)):.3f}"


def _node_ratio_all(rows: Sequence[Row], tool: str) -> str:
    good = [_nodes(after) / _nodes(before) for before, after in _pairs(rows, tool)]
    run = sum(tool in row.tools for row in rows)
    return f"{mean(good + [1.0] * (run - len(good))):.3f}"


def _node_sums(rows: Sequence[Row], tool: str) -> str:
    pairs = _pairs(rows, tool)
    return _ratio(sum(_nodes(after) for _, after in pairs), sum(_nodes(before) for before, _ in pairs))


def _glue_sums(rows: Sequence[Row], tool: str) -> str:
    pairs = _pairs(rows, tool)
    return _ratio(sum(after.glue or 0 for _, after in pairs), sum(before.glue or 0 for before, _ in pairs))


def _glue_left(rows: Sequence[Row], tool: str) -> str:
    return str(sum((row.right().get(tool) or row.original).glue or 0 for row in rows if tool in row.tools))


def _glue_mean(rows: Sequence[Row], tool: str) -> str:
    pairs = _pairs(rows, tool)
    return f"{mean(((after.glue or 0) + 1) / ((before.glue or 0) + 1) for before, after in pairs):.3f}"


def _best(rows: Sequence[Row], tool: str) -> str:
    best = [
        row
        for row in rows
        if tool in (right := row.right()) and _nodes(right[tool]) == min(_nodes(record) for record in right.values())
    ]
    return str(len(best))


def _sizes(rows: Sequence[Row], tool: str) -> list[float]:
    return [(after.bytes or 0) / (before.bytes or 1) for before, after in _pairs(rows, tool)]


def _again(pick: Callable[[Record], bool | None]) -> Figure:
    def figure(rows: Sequence[Row], tool: str) -> str:
        pairs = _pairs(rows, tool)
        return f"{sum(bool(pick(after)) for _, after in pairs)}/{len(pairs)}"

    return figure


def _origin(rows: Sequence[Row], tool: str) -> str:
    kept = [after.origin or 0.0 for before, after in _pairs(rows, tool) if before.origin == 1.0]
    return f"{sum(kept) / len(kept):.3f}" if kept else "-"


def _latency(level: str) -> Figure:
    def figure(rows: Sequence[Row], tool: str) -> str:
        found = [after.latency[level] for _, after in _pairs(rows, tool) if after.latency]
        return f"{mean(found):.3f}" if found else "-"

    return figure


def _cpu(rows: Sequence[Row], tool: str) -> str:
    return f"{sum(row.tools[tool].cpu for row in rows if tool in row.tools):.1f}"


def _peak(rows: Sequence[Row], tool: str) -> str:
    found = [row.tools[tool].peak_mib or 0.0 for row in rows if tool in row.tools]
    return f"{max(found, default=0):.0f}"


def _ratio(after: float, before: float) -> str:
    return f"{after / before:.3f}" if before else "-"


Figure = Callable[[Sequence[Row], str], str]

FIGURES: list[tuple[str, Figure]] = [
    *((status, _count(status)) for status in FAILURES),
    ("not right", _failed),
    ("node ratio, geometric mean, right only", _node_ratio),
    ("node ratio, geometric mean, failures as 1", _node_ratio_all),
    ("node ratio of sums, right only", _node_sums),
    ("best or tied with the best", _best),
    ("shape glue ratio of sums, right only", _glue_sums),
    ("shape glue left, failures unchanged", _glue_left),
    ("shape glue + 1, geometric mean, right only", _glue_mean),
    ("file ratio, geometric mean", lambda rows, tool: f"{mean(_sizes(rows, tool)):.3f}"),
    ("file ratio, largest", lambda rows, tool: f"{max(_sizes(rows, tool), default=math.nan):.3f}"),
    ("files over 1% larger", lambda rows, tool: str(sum(ratio > GROWN for ratio in _sizes(rows, tool)))),
    ("second run: same bytes", _again(lambda record: record.same_bytes)),
    ("second run: same operators", _again(lambda record: record.same_operators)),
    ("nodes that still say their origin", _origin),
    ("latency ratio, not optimised, geometric mean", _latency("disable")),
    ("latency ratio, all optimisations, geom. mean", _latency("all")),
    ("CPU of all, seconds", _cpu),
    ("peak memory, largest, MiB", _peak),
]

SUMMARY = (
    "node ratio, geometric mean, failures as 1",
    "not right",
    "best or tied with the best",
    "shape glue ratio of sums, right only",
    "file ratio, largest",
    "second run: same bytes",
    "nodes that still say their origin",
    "latency ratio, not optimised, geometric mean",
    "latency ratio, all optimisations, geom. mean",
    "CPU of all, seconds",
)
"""Titles of the figures in `summary`."""
