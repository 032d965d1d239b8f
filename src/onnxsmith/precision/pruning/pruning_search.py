"""Finds the largest share of channels with which the score is within the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_NARROW = 0.005
"""The search ends when two shares differ by no more than this. A choice: half a percent of the channels."""


@dataclass
class Search:
    """Tries at most `most` cuts. `meets` says whether the cut of a share is within the budget; `size` counts the
    channels that a share removes. Shares that remove equally many channels are the same cut, which is tried once."""

    meets: Callable[[float], bool]
    most: int
    size: Callable[[float], int]
    tried: list[float] = field(default_factory=list)
    _known: dict[int, bool] = field(default_factory=dict)

    def largest(self, top: float) -> float | None:
        """Returns the largest share up to `top` that met the budget; None if no tried share did."""
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
        """Whether the share's cut meets the budget. A cut that removes nothing always does, and is not tried."""
        size = self.size(share)
        if size == 0:
            return True
        if size not in self._known:
            self.tried.append(share)
            self._known[size] = self.meets(share)
        return self._known[size]
