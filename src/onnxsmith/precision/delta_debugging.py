"""Searches for a smallest set that passes, over elements of any kind.

Delta debugging (A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on
Software Engineering 28(2), 2002) over an order in which important elements should come first. First finds a prefix of
the order that passes, by doubling and halving. Then drops parts of it as long as the rest passes: halves first and
single elements last, the least important ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
Passes = Callable[[frozenset[T]], bool]


def minimal(order: Sequence[T], passes: Passes[T]) -> tuple[T, ...] | None:
    """Elements of `order`, in that order, that pass together and fail if any one of them is missing; None if not even
    all elements pass.

    `passes` has confirmed the result, so it holds even if a larger set does not always pass when a smaller one does.
    """
    if passes(frozenset()):
        return ()
    prefix = _prefix(order, passes)
    return None if prefix is None else _reduced(list(prefix), passes)


def _prefix(order: Sequence[T], passes: Passes[T]) -> Sequence[T] | None:
    """A prefix that passes: the shortest one, if every longer one passes as well."""
    low, high = 0, 1
    while high < len(order) and not passes(frozenset(order[:high])):
        low, high = high, high * 2
    high = min(high, len(order))
    if not passes(frozenset(order[:high])):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if passes(frozenset(order[:middle])):
            high = middle
        else:
            low = middle
    return order[:high]


def by_groups(order: Sequence[T], passes: Passes[T]) -> tuple[T, ...] | None:
    """Elements of `order` that pass together, found without trust in the order where it does not help; None if not even
    all elements pass.

    First a prefix of at most half of the elements is looked for. If none passes, groups are dropped from all elements:
    halves, then quarters, down to single ones. So elements at the end of the order are found as well, and whenever
    `passes` begins to refuse, what is left of the elements has passed.
    """
    found = minimal(order[: (len(order) + 1) // 2], passes)
    if found is not None:
        return found
    return _reduced(list(order), passes) if passes(frozenset(order)) else None


def _reduced(kept: list[T], passes: Passes[T]) -> tuple[T, ...]:
    size = max(len(kept) // 2, 1)
    while True:
        before, end = len(kept), len(kept)
        while end > 0:
            start = max(end - size, 0)
            rest = kept[:start] + kept[end:]
            if passes(frozenset(rest)):
                kept = rest
            end = start
        if size == 1 and len(kept) == before:
            return tuple(kept)
        size = max(size // 2, 1)
