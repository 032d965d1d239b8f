"""Which channels go for a share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnxsmith.metrics.base import Floats
from onnxsmith.precision.pruning.groups import Channel, Group
from onnxsmith.problem import problem


@dataclass(frozen=True)
class Choice:
    """How channels are chosen: as a share of each group, or of all groups together; as many stay of each group as a
    multiple, one at least."""

    multiple: int = 1
    is_global: bool = False

    def gone(self, groups: Sequence[Group], scores: Sequence[Floats], share: float) -> list[Channel]:
        """The channels with the least scores, `share` of them."""
        found: list[Channel] = []
        limit = self._limit(scores, share) if self.is_global else None
        for group, own in zip(groups, scores, strict=True):
            count = len(group.channels)
            wanted = math.floor(share * count + _ROUNDING) if limit is None else int(np.sum(own <= limit))
            stay = max(1, count - wanted)
            stay = min(count, math.ceil(stay / self.multiple) * self.multiple)
            found += [group.channels[index] for index in np.argsort(own, kind="stable")[: count - stay]]
        return found

    def _limit(self, scores: Sequence[Floats], share: float) -> float:
        every = np.sort(np.concatenate(list(scores))) if scores else np.zeros(0)
        count = math.floor(share * len(every) + _ROUNDING)
        return float(every[count - 1]) if count else -math.inf


_ROUNDING = 1e-9
"""Added to a number of channels before it is rounded down: 0.3 · 10 is 2.9999999999999996 in float64."""


def share_of(given: str | float) -> float:
    """Reads `30%` or a number between 0 and 1.

    Raises:
        OnnxsmithError: `prune/share`.
    """
    said = str(given).strip()
    try:
        amount = float(said.removesuffix("%")) / (100 if said.endswith("%") else 1)
    except ValueError:
        amount = math.nan
    if not 0 < amount < 1:
        raise problem(
            "prune/share",
            f"{said!r} is no share of channels",
            why="it is a percentage between 0% and 100%, or a number between 0 and 1",
            fix="give --share 30%",
        )
    return amount
