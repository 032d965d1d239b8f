"""Decides which parts of a report a reader sees at first, where the others are folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from onnxsmith.base.report.base import Block, Table, Text, Tone

_T = TypeVar("_T")


def opened(parts: Sequence[tuple[_T, Sequence[Block]]], *, has_problems: bool) -> list[tuple[_T, Sequence[Block]]]:
    """Returns the parts that say what is wrong or what changed. If there are none, and no problem says it, the first
    part is opened."""
    first = [part for part in parts if _matters(part[1])]
    return first or ([] if has_problems else list(parts[:1]))


def _matters(blocks: Sequence[Block]) -> bool:
    return any((isinstance(one, Table) and one.is_key) or (isinstance(one, Text) and one.tone is Tone.BAD)
               for one in blocks)  # fmt: skip
