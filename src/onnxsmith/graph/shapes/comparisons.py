"""Compares integer expressions for all sizes at once. Returns 1 for true, 0 for false, None if it depends on the
sizes."""

from __future__ import annotations

from collections.abc import Callable

from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.shapes.symbols import Element


def truth(decide: Callable[[Element, Element], bool], a: Element | None, b: Element | None) -> int | None:
    """Returns 1 if `decide(a, b)` is true for all sizes, 0 if `a` and `b` are the same expression, else None."""
    if a is None or b is None:
        return None
    return 1 if decide(a, b) else 0 if a == b else None


def equal(a: Element, b: Element) -> int | None:
    differs = truth(symbols.differ, a, b)
    return None if differs is None else 1 - differs


def less(a: Element, b: Element) -> int | None:
    return 0 if symbols.at_least(a, b) else 1 if symbols.at_least(b, a) and symbols.differ(a, b) else None


def not_above(a: Element, b: Element) -> int | None:
    above = less(b, a)
    return None if above is None else 1 - above


def both(a: Element | None, b: Element | None) -> int | None:
    return 0 if 0 in (a, b) else 1 if a == b == 1 else None


def either(a: Element | None, b: Element | None) -> int | None:
    return 1 if 1 in (a, b) else 0 if a == b == 0 else None
