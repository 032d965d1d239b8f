"""Computes lower and upper bounds of polynomials over dimensions, for `symbols.py`.

A name stands for a number of at least 0, and of at least its entry in `LEAST`.
"""

from __future__ import annotations

import math
from contextvars import ContextVar

from onnxsmith.graph.shapes import polynomials
from onnxsmith.graph.shapes.polynomials import Atom, Monomial, Poly

Least = frozenset[tuple[str, int]]
"""Holds names with their least values."""
LEAST: ContextVar[Least] = ContextVar("least", default=frozenset())


def limit(poly: Poly, *, low: bool) -> int | None:
    """Returns the lower (`low`) or upper bound of a polynomial, term by term; None if there is none."""
    bound = 0
    for monomial, factor in poly:
        part = _bound_of_product(monomial, low=low == (factor > 0))
        if part is None:
            return None
        bound += factor * part
    return bound


def _bound_of_product(monomial: Monomial, *, low: bool) -> int | None:
    """Returns the bound of a product; None for several factors of which one may be negative."""
    if len(monomial) == 1:
        return _bound_of_factor(monomial[0], low=low)
    least = [_bound_of_factor(atom, low=True) for atom in monomial]
    if any(bound is None or bound < 0 for bound in least):
        return None
    bounds = least if low else [_bound_of_factor(atom, low=False) for atom in monomial]
    return None if None in bounds else math.prod(bound for bound in bounds if bound is not None)


def _bound_of_factor(atom: Atom, *, low: bool) -> int | None:
    if isinstance(atom, str):
        given = max((least for name, least in LEAST.get() if name == atom), default=0)
        return given if low else None
    if atom.name == "//":
        top, bottom = atom.arguments
        divisor = polynomials.as_constant(bottom)
        bound = limit(top, low=low)
        if divisor is not None:
            return None if bound is None else bound // divisor
        return 0 if low and bound is not None and bound >= 0 else None
    bounds = [limit(argument, low=low) for argument in atom.arguments]
    known = [bound for bound in bounds if bound is not None]
    if atom.name == "Broadcast":  # equals one of its arguments, and is 1 only if all are 1
        return None if len(known) < len(bounds) else max(known) if min(known) > 0 or not low else min(known)
    if len(known) == len(bounds) or (known and low == (atom.name == "Max")):
        return max(known) if atom.name == "Max" else min(known)
    return None


def extent(poly: Poly, most: int) -> tuple[int, int]:
    """Returns the least and the largest value of a polynomial if no product of names exceeds `most`."""
    low = high = 0
    for monomial, factor in poly:
        ends = [factor * end for end in _extent_of_product(monomial, most)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _extent_of_product(monomial: Monomial, most: int) -> tuple[int, int]:
    """Returns the range of a product. Assumes that the product of its factors that are sizes is at most `most`."""
    ranges = [_extent_of_factor(atom, most) for atom in monomial]
    sizes = [one for one in ranges if one[0] >= 0 and one[1] <= most]
    low, high = (math.prod(one[0] for one in sizes), most if len(sizes) > 1 else sizes[0][1]) if sizes else (1, 1)
    for one in ranges:
        if one not in sizes:
            ends = [a * b for a in (low, high) for b in one]
            low, high = min(ends), max(ends)
    return low, high


def _extent_of_factor(atom: Atom, most: int) -> tuple[int, int]:
    if isinstance(atom, str):
        least = max((least for name, least in LEAST.get() if name == atom), default=0)
        return least, max(least, most)
    ranges = [extent(argument, most) for argument in atom.arguments]
    if atom.name == "//":
        ends = [end // divisor for end in ranges[0] for divisor in (max(1, ranges[1][0]), max(1, ranges[1][1]))]
        return min(ends), max(ends)
    if atom.name == "Broadcast":
        return min(low for low, _ in ranges), max(high for _, high in ranges)
    extreme = max if atom.name == "Max" else min
    return extreme(low for low, _ in ranges), extreme(high for _, high in ranges)
