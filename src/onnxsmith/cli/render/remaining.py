"""Estimates the time that is left of a stage, from the steps that are done."""

from __future__ import annotations

import time

_SURE = 1.0
"""Seconds of a stage before it has an estimate. A choice: the first steps of a stage start processes, which later steps
find running."""


class Remaining:
    """Hears the steps of each stage. The estimate takes the steps that are left to be as long as those since the stage
    began, or since it last began to count anew."""

    def __init__(self) -> None:
        self._stage, self._total = "", 0
        self._first, self._begin = 0, 0.0

    def words(self, stage: str, done: int, total: int) -> str:
        """Returns how far a stage is: `3 of 12, about 40 s left`; "" where its length is not known."""
        now = time.monotonic()
        if (stage, total) != (self._stage, self._total) or done < self._first:
            self._stage, self._total, self._first, self._begin = stage, total, done, now
        if not total:
            return ""
        steps, seconds = done - self._first, now - self._begin
        far = f"{done:,} of {total:,}"
        if steps < 1 or seconds < _SURE or done >= total:
            return far
        return f"{far}, about {_duration(seconds / steps * (total - done))} left"


def _duration(seconds: float) -> str:
    """Returns seconds as people say them: `40 s`, `5 min`, `1.5 h`."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
