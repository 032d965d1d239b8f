"""Reads the parameters that the steps of processing and the bundles share: numbers, sizes, and words of a list."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def numbers(value: Any) -> tuple[float, ...]:
    """Returns finite numbers from a number, a list, or a text such as "0.5,0.5,0.5".

    Raises:
        ValueError, TypeError: if the value is something else.
    """
    items = value.split(",") if isinstance(value, str) else [value] if isinstance(value, int | float) else value
    found = tuple(float(item) for item in items)
    if not found or not all(map(math.isfinite, found)):
        raise ValueError("give finite numbers")
    return found


def size(value: Any) -> tuple[int, int]:
    """Returns (height, width) from a number, a list of one or two numbers, or a text such as "224x256".

    Raises:
        ValueError, TypeError: if the value is something else.
    """
    items = value.lower().split("x") if isinstance(value, str) else [value] if isinstance(value, int) else list(value)
    found = [positive(item) for item in items]
    if len(found) not in (1, 2):
        raise ValueError("give HEIGHTxWIDTH")
    return found[0], found[-1]


def positive(value: Any) -> int:
    """Returns a whole number of at least 1.

    Raises:
        ValueError, TypeError: if the value is something else.
    """
    if int(value) < 1:
        raise ValueError("give a number of at least 1")
    return int(value)


def one_of(allowed: tuple[str, ...]) -> Callable[[Any], str]:
    """Returns a reader that takes only these words."""

    def read(value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"allowed values are {', '.join(allowed)}")
        return str(value)

    return read
