"""Times runs in the process that runs the model, on inputs that are already in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = Callable[[], object]


def measured(call: Call, *, runs: int, inner: int = 1, budget: float = 0.0) -> list[int]:
    """Returns the nanoseconds of each sample. A sample is `inner` calls in a row. Stops after `runs` samples, or after
    the first sample that ends later than `budget` seconds (0: no budget). There is always at least one sample."""
    clock = time.perf_counter_ns
    end = clock() + int(budget * 1e9) if budget else None
    found: list[int] = []
    for _ in range(max(runs, 1)):
        begin = clock()
        for _ in range(inner):
            call()
        now = clock()
        found.append(now - begin)
        if end is not None and now >= end:
            break
    return found


@dataclass(frozen=True)
class Timer:
    """Repeats a run on inputs that were given once. `where` describes the call that is timed."""

    where: str
    samples: Callable[[int, int, float], list[int]]
    """Times like `measured`, as a function of (runs, inner, budget). Raises the runtime's errors."""


def local(call: Call, where: str) -> Timer:
    """Returns a timer for a function of this process."""
    return Timer(where, lambda runs, inner, budget: measured(call, runs=runs, inner=inner, budget=budget))


def asked(ask: Callable[[dict[str, Any]], dict[str, Any]], where: str) -> Timer:
    """Returns a timer whose runs happen in a child process. `ask` sends the child a request."""

    def samples(runs: int, inner: int, budget: float) -> list[int]:
        found: list[int] = ask({"do": "time", "runs": runs, "inner": inner, "budget": budget})["ns"]
        return found

    return Timer(where, samples)
