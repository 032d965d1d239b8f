"""Searches the smallest keep-list with which a model meets its budget, by delta debugging.

This is delta debugging (A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE
Transactions on Software Engineering 28(2), 2002) over an order in which important elements should come first. It first
finds a prefix of the order that passes, by doubling and halving. Then it drops parts of the prefix as long as the rest
passes: halves first, single elements last, from the end of the order to its start.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
Passes = Callable[[frozenset[T]], bool]


def minimal(order: Sequence[T], passes: Passes[T]) -> tuple[T, ...] | None:
    """Returns elements of `order`, in that order, that pass together and fail if any one of them is missing. Returns
    None if even all elements together fail.

    `passes` was called with the result itself. So the result passes even if a larger set may fail where a smaller one
    passes.
    """
    if passes(frozenset()):
        return ()
    prefix = _prefix(order, passes)
    return None if prefix is None else _reduced(list(prefix), passes)


def _prefix(order: Sequence[T], passes: Passes[T]) -> Sequence[T] | None:
    """Returns a prefix that passes; the shortest one, if every longer prefix passes too. None if none does."""
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
    """Returns elements of `order` that pass together, even if the order is misleading. Returns None if even all
    elements together fail.

    First looks for a prefix of at most half of the elements. If none passes, drops groups from all elements: halves,
    then quarters, down to single elements. So needed elements at the end of the order are found too. If `passes` begins
    to refuse every set, because its tries are spent, the elements left at that point have passed.
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


Keep = frozenset[str]


@dataclass
class Search:
    """Evaluates keep-lists, each once and at most `most` in all.

    `order` are the layers, the largest damage first. `meets` evaluates a list.
    """

    order: Sequence[str]
    meets: Callable[[Keep], bool]
    most: int
    _seen: dict[Keep, bool] = field(default_factory=dict)

    @property
    def evaluations(self) -> int:
        """Counts the evaluated lists."""
        return len(self._seen)

    def smallest(self, always: Keep = frozenset()) -> Keep | None:
        """Returns a list that meets the budget, as small as the evaluations allow; None if no tried list meets the
        budget."""
        found = by_groups(self.order, lambda keep: self._try(always | keep))
        return None if found is None else always.union(found)

    def _try(self, keep: Keep) -> bool:
        """Whether the list meets the budget; False once the evaluations are spent."""
        if keep not in self._seen:
            if len(self._seen) >= self.most:
                return False
            self._seen[keep] = self.meets(keep)
        return self._seen[keep]
