"""Writes short clauses for a headline: sizes that a comparison did not try, or that the reference refuses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from onnxsmith.base.words import first_few
from onnxsmith.verification.input_trials import Run, tried

_MOST = 3
"""Limits the clauses about symbols in a headline; further symbols are only counted. A choice."""


def clauses(
    runs: Sequence[Run],
    base: Run | None,
    outcomes: Iterable[tuple[Mapping[str, int], bool]],
    tied: Sequence[Sequence[str]] = (),
    named: Collection[int | str] | None = None,
) -> list[str]:
    """Returns one clause for each symbol whose sizes were limited. `base` is the input from which other inputs were
    made. `outcomes` are the tried sizes and whether the reference accepted them. `tied` are the symbols that change
    together. `named` are the dimensions that the user knows, without dimensions that occur only inside expressions."""
    at = base.feed.sizes if base is not None else {}
    groups = {symbol: set(group) for group in tied for symbol in group}
    refused: dict[str, set[int]] = {}
    for sizes, taken in outcomes if at else ():
        moved = {symbol for symbol, size in sizes.items() if size != at.get(symbol)}
        for symbol in moved if not taken else ():
            if moved == groups.get(symbol, {symbol}):
                refused.setdefault(symbol, set()).add(sizes[symbol])
    by_text: dict[str, list[str]] = {}
    for symbol, seen in tried(runs).items():
        said = _clause({size for size in seen if size}, refused.get(symbol, set()) - {0} - set(seen))
        if said and (named is None or symbol in named):
            by_text.setdefault(said, []).append(symbol)
    found = [f"{_listed(symbols)} {said}" for said, symbols in by_text.items()]
    left = sum(len(symbols) for symbols in list(by_text.values())[_MOST:])
    return [*found[:_MOST], *([f"{left} other axes were limited, too"] if left else [])]


def _clause(taken: set[int], refused: set[int]) -> str:
    if not taken:
        return "was tried at 0 only"
    most = max(taken)
    if len(taken) == 1:
        return f"was tried at {most} only"
    larger = {size for size in refused if size > most}
    if larger and larger == refused:
        return f"was not taken above {most}" if most + 1 in larger else f"was taken up to {most}, not at {min(larger)}"
    if len(taken) == 2 and larger and len(refused) > 2:
        return f"is taken at {' and '.join(map(str, sorted(taken)))} only"
    return ""


def _listed(symbols: list[str]) -> str:
    return first_few(symbols, 3 if len(symbols) > 4 else 4)
