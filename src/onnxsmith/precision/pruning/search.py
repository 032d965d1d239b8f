"""Finds the largest share of channels with which the score is within the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_NARROW = 0.005
"""The search ends where two shares differ by no more. A choice: half a percent of the channels."""


@dataclass
class Search:
    """Tries at most `most` shares. `meets` says whether a share is within the budget."""

    meets: Callable[[float], bool]
    most: int
    tried: list[float] = field(default_factory=list)

    def largest(self, top: float) -> float | None:
        """The largest share up to `top` that was found to meet the budget; None if none of those tried does."""
        if self._meets(top):
            return top
        low, high, best = 0.0, top, None
        while len(self.tried) < self.most and high - low > _NARROW:
            middle = (low + high) / 2
            if self._meets(middle):
                low = best = middle
            else:
                high = middle
        return best

    def _meets(self, share: float) -> bool:
        self.tried.append(share)
        return self.meets(share)
