"""Writes counts, lists and long texts for people: each of these in one form everywhere."""

from __future__ import annotations

from collections.abc import Collection


def several(count: int, noun: str, plural: str = "") -> str:
    """`1 node`, `2 nodes`, `1,024 nodes`, `2 entries`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def first_few(texts: Collection[str], most: int, between: str = ", ") -> str:
    """Lists the first texts, and counts those after `most`: `a, b and 3 more`, or `a; b; and 3 more`."""
    shown = between.join(list(texts)[:most])
    more = len(texts) - most
    return f"{shown}{';' * (between == '; ')} and {more:,} more" if more > 0 else shown


def shortened(text: str, longest: int) -> str:
    """Cuts a text of more than `longest` characters, and ends it with `…`."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
