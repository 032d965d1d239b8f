"""Writes a count with its noun: `1 node`, `2 nodes`."""

from __future__ import annotations


def several(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`, `1,024 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
