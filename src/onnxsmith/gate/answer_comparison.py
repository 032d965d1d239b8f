"""Walks through two answers and compares each part by the measure of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from onnxsmith.base import rooms
from onnxsmith.gate.answers.base import NO_MEASURE, Counts, Difference, Kind, Limits, Part, by_key
from onnxsmith.gate.plain_answers import is_list, plain

_STRUCTURES = 30
"""Is the rank of mappings and sequences among the kinds: detections and rankings come first, single values last."""

_IN_ORDER = "is compared item by item, in order"
"""Says how a list is compared. Of lists in a list, the outer one is named: its items may have moved."""


@cache
def _kinds() -> tuple[Kind, ...]:
    found = (made() for made in rooms.classes("onnxsmith.gate.answers", Kind).values())
    return tuple(sorted(found, key=lambda kind: kind.rank))


def differences(ours: Any, theirs: Any, limits: Limits, counts: Counts, at: str = "") -> Iterator[Difference]:
    """Yields the differences of two answers. Mappings are compared by key, sequences by position, arrays, boxes, scores
    and texts by their own measures."""
    for found in _step(plain(ours), plain(theirs), limits, counts, at):
        if isinstance(found, Difference):
            yield found
            continue
        for one in differences(found.ours, found.theirs, limits, counts, found.at):
            is_outer = bool(found.how) and (not one.how or one.how.endswith(_IN_ORDER))
            yield replace(one, how=found.how) if is_outer else one


def _step(ours: Any, theirs: Any, limits: Limits, counts: Counts, at: str) -> Iterator[Difference | Part]:
    """Yields what two answers differ in at their top, and their parts."""
    for kind in _kinds():
        if kind.rank < _STRUCTURES and kind.fits(ours) and kind.fits(theirs):
            yield from kind.differences(ours, theirs, at, limits, counts)
            return
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        yield from by_key(ours, theirs, at)
    elif is_list(ours) and is_list(theirs):
        how = f"{at or 'the answer'} {_IN_ORDER}"
        if len(ours) != len(theirs):
            yield Difference(at, "count", f"{len(ours)} items and {len(theirs)}", how)
        for place, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield Part(f"{at}[{place}]", one, other, how)
    else:
        kinds = [kind for kind in _kinds() if kind.rank > _STRUCTURES and kind.fits(ours) and kind.fits(theirs)]
        if kinds:
            yield from kinds[0].differences(ours, theirs, at, limits, counts)
        else:
            name = NO_MEASURE if type(ours) is type(theirs) else "type"
            yield Difference(at, name, f"{_type(ours)} and {_type(theirs)} cannot be compared")


def _type(value: Any) -> str:
    return f"a {type(value).__name__}"
