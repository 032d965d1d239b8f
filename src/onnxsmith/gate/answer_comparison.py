"""Walks through two answers and compares each part by the measure of its kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from onnxsmith.base import rooms
from onnxsmith.gate.answers.base import Counts, Difference, Kind, Limits

_STRUCTURES = 30
"""Is the rank of mappings and sequences among the kinds: detections and rankings come first, single values last."""


@cache
def _kinds() -> tuple[Kind, ...]:
    found = (made() for made in rooms.classes("onnxsmith.gate.answers", Kind).values())
    return tuple(sorted(found, key=lambda kind: kind.rank))


def differences(ours: Any, theirs: Any, limits: Limits, counts: Counts, at: str = "") -> Iterator[Difference]:
    """Yields the differences of two answers. Mappings are compared by key, sequences by position, arrays, boxes, scores
    and texts by their own measures."""
    ours, theirs = plain(ours), plain(theirs)
    for kind in _kinds():
        if kind.rank < _STRUCTURES and kind.fits(ours) and kind.fits(theirs):
            yield from kind.differences(ours, theirs, at, limits, counts)
            return
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in dict.fromkeys((*ours, *theirs)):
            if key in ours and key in theirs:
                yield from differences(ours[key], theirs[key], limits, counts, f"{at}[{key!r}]")
            else:
                yield Difference(f"{at}[{key!r}]", "keys", f"in the {'first' if key in ours else 'second'} answer only")
    elif _is_list(ours) and _is_list(theirs):
        if len(ours) != len(theirs):
            yield Difference(at, "count", f"{len(ours)} items and {len(theirs)}")
        for place, (one, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from differences(one, other, limits, counts, f"{at}[{place}]")
    else:
        kinds = [kind for kind in _kinds() if kind.rank > _STRUCTURES and kind.fits(ours) and kind.fits(theirs)]
        if kinds:
            yield from kinds[0].differences(ours, theirs, at, limits, counts)
        else:
            yield Difference(at, "type", f"{_type(ours)} and {_type(theirs)} cannot be compared")


def plain(answer: Any) -> Any:
    """Returns an answer in the types of numpy and Python: tensors and pictures as arrays, dataclasses and named tuples
    as mappings."""
    if hasattr(answer, "detach") and hasattr(answer, "cpu"):
        tensor = answer.detach().cpu()
        return tensor.float().numpy() if "bfloat16" in str(tensor.dtype) else tensor.numpy()
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        return {one.name: getattr(answer, one.name) for one in dataclasses.fields(answer)}
    if isinstance(answer, tuple) and hasattr(answer, "_asdict"):
        return dict(answer._asdict())
    if type(answer).__module__.startswith("PIL."):
        return np.asarray(answer)
    if isinstance(answer, list) and answer and all(isinstance(one, float) for one in answer):
        return np.asarray(answer)
    return answer


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _type(value: Any) -> str:
    return f"a {type(value).__name__}"
