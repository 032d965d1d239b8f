"""Measures what a check would have noticed: plants small faults in the candidate and looks whether the check sees them.

A check passes for two reasons: nothing is wrong, or nothing could have been seen. Only the first is a verification. So
after outputs agreed, weights of the candidate are changed one at a time, by 1% up or down in each element, and what it
answers then is held to what it answered before, by what the check allowed. A fault that is not seen is planted five
times as large; one that is still not seen as large as the weight itself: if that moves nothing, the weight has no
influence on these inputs, and there is nothing in it to be right about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from onnxsmith.comparison.explore import Run
from onnxsmith.comparison.probe import Probe
from onnxsmith.report.parts.verification import FEW, Power
from onnxsmith.runtimes.base import Outputs

SMALL, LARGE, WHOLE = 0.01, 0.05, 1.0
"""Shares of its size by which a weight is changed."""
_NOT_PLANTED = -1.0
_MOST = 24
"""Weights that are tried, evenly chosen from the first to the last: each takes a run of the model."""
_INPUTS = 2
"""Inputs on which a fault is looked for before it counts as not seen."""

Sees = Callable[[Run, Outputs, Outputs], bool]
"""Whether the check that was made of a run tells the second answer from the first."""


def measured(probe: Probe, runs: Sequence[Run], sees: Sees, *, seed: int = 0) -> Power | None:
    """How many faults the check sees. None where the model does not run with other weights, or holds no floats."""
    usable = [run for run in _telling(runs) if probe.plain(run.feed) is not None][:_INPUTS]
    if not usable:
        return None
    weights = probe.weights
    names = [weight.name for weight in weights] or sorted(usable[0].feed.values)
    by_name = {weight.name: weight for weight in weights}
    chosen = names if len(names) <= _MOST else [names[i * (len(names) - 1) // (_MOST - 1)] for i in range(_MOST)]
    verdicts: dict[str, float | None] = {}

    def answer(run: Run, share: float, name: str) -> Outputs | None:
        if name in by_name:
            return probe.faulty(run.feed, by_name[name], share, seed)
        return probe.faulty_input(run.feed, name, share, seed)

    for name in chosen:
        found = _least_seen(probe, usable, sees, partial(answer, name=name))
        if found != _NOT_PLANTED:
            verdicts[name] = found
        if sum(one in (LARGE, WHOLE) for one in verdicts.values()) > FEW * len(chosen):
            break  # what is known already is too much
    if not verdicts:
        return None
    return Power(
        kind="weights" if weights else "inputs",
        of=len(names),
        tried=len(verdicts),
        seen=sum(one == SMALL for one in verdicts.values()),
        only_large=tuple(name for name, one in verdicts.items() if one == LARGE),
        blind=tuple(name for name, one in verdicts.items() if one == WHOLE),
        inert=tuple(name for name, one in verdicts.items() if one is None),
    )


def _telling(runs: Sequence[Run]) -> list[Run]:
    """The runs, the first and the one with the largest inputs before the others: attention over one position, or a
    pool over one element, hides the weights behind it."""
    first, rest = list(runs[:1]), list(runs[1:])
    return first + sorted(rest, key=_elements, reverse=True)


def _elements(run: Run) -> int:
    return sum(value.size for value in run.feed.values.values() if isinstance(value, np.ndarray))


def _least_seen(
    probe: Probe, runs: Sequence[Run], sees: Sees, answer: Callable[[Run, float], Outputs | None]
) -> float | None:
    """The smallest share at which the fault is seen on one of the inputs; None where it is at none, `_NOT_PLANTED`
    where the weight cannot be changed."""
    planted = False

    def seen(share: float) -> bool:
        nonlocal planted
        for run in runs:
            usual, faulty = probe.plain(run.feed), answer(run, share)
            if usual is None or faulty is None:
                continue
            planted = True
            if sees(run, usual, faulty):
                return True
        return False

    if seen(SMALL):
        return SMALL
    if not planted:
        return _NOT_PLANTED
    if not seen(WHOLE):
        return None
    return LARGE if seen(LARGE) else WHOLE
