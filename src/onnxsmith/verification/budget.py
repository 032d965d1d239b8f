"""Plans how many faults a verification plants, beside the plain runs of the two sides.

A comparison that agrees still has to show that it would have seen a fault. Each planted fault costs runs of the model,
for a large model minutes. So the cost of one is known before the others are planted, and as many are planted as fit.
The report says how many were left out. What is known to differ between the two files is always looked at.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeVar

from onnxsmith.runtimes import _child

T = TypeVar("T")

_LEAST_SECONDS = 2.0
"""Sets the seconds that further evidence may always take. A choice: a user waits about as long for the start of
Python."""
_OF_PLAIN = 2.0
"""Sets the time for further evidence, in multiples of the time of the plain runs. A choice."""


class Budget:
    """Counts processor time. A `thorough` budget has no limit. It is made before the sessions of the two sides, and
    starts when the reference has run on all inputs. The time between counts as that of the plain runs."""

    def __init__(self, *, thorough: bool = False) -> None:
        self._thorough = thorough
        self._begin = _seconds()
        self._plain: float | None = None
        self._left_out: list[str] = []

    def starts(self) -> None:
        """Sets the limit. Later calls change nothing."""
        if self._plain is None:
            self._plain = self.spent()
            self._begin += self._plain

    def spent(self) -> float:
        """Returns the seconds since the budget started, or since it was made if it has not started."""
        return _seconds() - self._begin

    def few(self, items: Sequence[T], each: float, least: int, what: str) -> Sequence[T]:
        """Returns as many of the items as fit if one costs `each` seconds, evenly chosen, but no fewer than `least`.
        Records how many of `what` are left out."""
        count = max(least, int(self._left() / each)) if each > 0 and not self._thorough else len(items)
        if count >= len(items):
            return items
        self._left_out.append(f"{len(items) - count} of {len(items)} {what}")
        return [items[at * (len(items) - 1) // (count - 1)] for at in range(count)]

    def notes(self) -> tuple[str, ...]:
        """Returns a sentence on all that was left out, if anything was."""
        if not self._left_out:
            return ()
        return (
            (f"left out to save time (a thorough verification includes this: --thorough): {'; '.join(self._left_out)}"),
        )

    def _left(self) -> float:
        return max(_LEAST_SECONDS, _OF_PLAIN * (self._plain or 0.0)) - self.spent()


def _seconds() -> float:
    """Returns the processor time of this process and of the runtimes' processes. Wall time would depend on what else
    the machine does."""
    return time.process_time() + _child.processor_seconds()
