"""Searches the smallest keep-list with which a model meets its budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from onnxsmith.precision.delta_debugging import by_groups

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
