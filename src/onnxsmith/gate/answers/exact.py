"""Compares what must be equal: texts, integers, bools, None, and whatever defines equality itself."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from onnxsmith.base.words import shortened
from onnxsmith.gate.answers.base import NO_MEASURE, Counts, Difference, Kind, Limits

_SHOWN = 60
"""The most characters of a text that a difference shows. A choice: one line for both texts."""


class Exact(Kind):
    rank = 90

    def fits(self, answer: Any) -> bool:
        if isinstance(answer, np.ndarray):
            return False
        has_equality = any("__eq__" in vars(one) for one in type(answer).__mro__ if one is not object)
        return has_equality or isinstance(answer, str | bytes | int | Enum | None)

    def differences(self, ours: Any, theirs: Any, at: str, limits: Limits, counts: Counts) -> Iterator[Difference]:
        counts.add(0 if ours is None and theirs is None else 1)
        try:
            is_equal = bool(ours == theirs)
        except Exception as error:  # noqa: BLE001 — a class of the user may define equality as it likes
            said = f"{type(ours).__name__} cannot be compared: == raised {type(error).__name__}"
            yield Difference(at, NO_MEASURE, said)
            return
        if is_equal and isinstance(ours, bool) == isinstance(theirs, bool):
            return
        if isinstance(ours, str) and isinstance(theirs, str):
            yield Difference(at, "text", _first_difference(ours, theirs))
        else:
            yield Difference(at, "values", f"{_shown(ours)} and {_shown(theirs)}")


def _first_difference(ours: str, theirs: str) -> str:
    place = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    start = max(0, place - _SHOWN // 3)
    texts = (_shown(text[start:]) for text in (ours, theirs))
    return f"from character {place} on: {' and '.join(texts)}"


def _shown(value: Any) -> str:
    return shortened(repr(value), _SHOWN)
