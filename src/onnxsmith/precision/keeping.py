"""Searches the smallest list of layers to keep as they are with which a model meets its budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Keep = frozenset[str]


@dataclass
class Search:
    """Evaluates keep-lists, each once, at most `most` of them.

    `order` are the layers, those with the largest damage first. `meets` evaluates a list.
    """

    order: Sequence[str]
    meets: Callable[[Keep], bool]
    most: int

    def __post_init__(self) -> None:
        self._seen: dict[Keep, bool] = {}

    @property
    def evaluations(self) -> int:
        """How many lists were evaluated."""
        return len(self._seen)

    def smallest(self, always: Keep = frozenset()) -> Keep | None:
        """A prefix of the order that meets the budget, with parts dropped that it does not need; None if no list that
        was tried does.

        The prefix grows to twice its length until it is enough, then its end is found by halving. What is kept in vain
        is dropped in halves, the layers with the least damage first.
        """
        low, high = -1, 0
        while not self._try(always | frozenset(self.order[:high])):
            if high >= len(self.order) or self._spent:
                return None
            low, high = high, min(len(self.order), max(1, 2 * high))
        while high - low > 1 and not self._spent:
            middle = (low + high) // 2
            if self._try(always | frozenset(self.order[:middle])):
                high = middle
            else:
                low = middle
        return self._thinned(list(self.order[:high]), always)

    def _thinned(self, kept: list[str], always: Keep) -> Keep:
        size = len(kept) // 2
        while size and not self._spent:
            at = len(kept)
            while at > 0 and not self._spent:
                rest = kept[: max(0, at - size)] + kept[at:]
                if self._try(always | frozenset(rest)):
                    kept = rest
                at -= size
            size //= 2
        return always | frozenset(kept)

    @property
    def _spent(self) -> bool:
        return len(self._seen) >= self.most

    def _try(self, keep: Keep) -> bool:
        if keep not in self._seen:
            self._seen[keep] = self.meets(keep)
        return self._seen[keep]
