"""Measures what a check would have noticed: plants small faults in the candidate and looks whether the check sees them.

A check passes for two reasons: nothing is wrong, or nothing could have been seen. Only the first is a verification. So
after outputs agreed, weights of the candidate are changed one at a time, by 1% up or down in each element, and what it
answers then is held to what it answered before, by what the check allowed. A fault that is not seen is planted five
times as large; one that is still not seen as large as the weight itself: if that moves nothing, the weight has no
influence on these inputs, and there is nothing in it to be right about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from onnxsmith.comparison.explore import Run
from onnxsmith.comparison.probe import ADDED, EACH, TABLE, Probe
from onnxsmith.comparison.tensors import unit
from onnxsmith.report.parts.verification import FEW, Power
from onnxsmith.runtimes.base import Outputs

SMALL, LARGE, WHOLE = 0.01, 0.05, 1.0
"""Shares of its size by which a weight is changed."""
_STEPS = 8
"""Roundings of the dtype of what is changed that a change comes to at least."""
_NOT_PLANTED, _SLIGHT = -1.0, -2.0
_MOST = 24
"""Weights that are tried, evenly chosen from the first to the last: each takes a run of the model."""
_INPUTS = 2
"""Inputs on which a fault is looked for at first; where it is not seen, then on the others."""


class Check(Protocol):
    """What was checked of each run."""

    def sees(self, run: Run, usual: Outputs, faulty: Outputs) -> bool:
        """Whether the check tells the second answer from the first."""

    def effect(self, run: Run, usual: Outputs, faulty: Outputs) -> float:
        """How far apart the two are, in units of what two right computations may be apart by."""


def measured(probe: Probe, runs: Sequence[Run], check: Check, *, seed: int = 0) -> Power | None:
    """How many faults the check sees. None where the model does not run with other weights, or holds no floats."""
    usable = [run for run in _telling(runs) if probe.plain(run.feed) is not None]
    if not usable:
        return None
    weights = {weight.name: weight for weight in probe.weights}
    inputs = sorted(usable[0].feed.values)

    def in_weight(run: Run, share: float, name: str, manner: str) -> Outputs | None:
        return probe.faulty(run.feed, weights[name], share, seed, manner=manner)

    def in_input(run: Run, share: float, name: str, manner: str) -> Outputs | None:
        return probe.faulty_input(run.feed, name, share, seed, manner=manner)

    units = {name: unit(value) for name, value in usable[0].feed.values.items()}
    of_inputs = _Planting("inputs", inputs, usable, probe, check, in_input, units)
    if not weights:
        return of_inputs.power()
    units = {
        name: 0.0 if weight.is_levels else unit(np.empty(0, weight.tensor.dtype.numpy()))
        for name, weight in weights.items()
    }
    found = _Planting("weights", list(weights), usable, probe, check, in_weight, units).power()
    if found is None or found.moving:
        return found
    other = of_inputs.power()  # tables that these inputs do not reach
    return replace(other, idle=found.tried) if other is not None and other.moving and not other.shortcoming() else found


@dataclass(frozen=True)
class _Planting:
    """Faults in the weights or inputs of these `names`, looked for on the same few runs."""

    kind: str
    names: Sequence[str]
    runs: Sequence[Run]
    probe: Probe
    check: Check
    answer: Callable[[Run, float, str, str], Outputs | None]
    units: Mapping[str, float]
    """Unit roundoffs of what is changed: a hundredth is no more than a rounding or two of bfloat16."""

    def power(self) -> Power | None:
        """What is seen of them; None where none can be planted."""
        few = len(self.names) <= _MOST
        chosen = self.names if few else [self.names[i * (len(self.names) - 1) // (_MOST - 1)] for i in range(_MOST)]
        verdicts: dict[str, float | None] = {}
        for name in chosen:
            found = self._least_seen(name)
            if found != _NOT_PLANTED:
                verdicts[name] = found
            if sum(one in (LARGE, WHOLE) for one in verdicts.values()) > FEW * len(chosen):
                break  # what is known already is too much
        if not verdicts:
            return None

        coarsest = max(self.units.get(name, 0.0) for name in verdicts)

        def of(share: float | None) -> tuple[str, ...]:
            return tuple(name for name, one in verdicts.items() if one == share)

        return Power(
            kind=self.kind,
            of=len(self.names),
            tried=len(verdicts),
            seen=len(of(SMALL)),
            only_large=of(LARGE),
            blind=of(WHOLE),
            inert=of(None),
            slight=of(_SLIGHT),
            small=max(SMALL, _STEPS * coarsest),
            large=max(LARGE, _STEPS * coarsest),
        )

    def _least_seen(self, name: str) -> float | None:
        """The smallest share at which the fault is seen on one of the inputs; None where it is at none, `_NOT_PLANTED`
        where the weight cannot be changed, `_SLIGHT` where a smaller one comes to no more than rounding.
        """
        effects: dict[float, float] = {}
        least = _STEPS * self.units.get(name, 0.0)

        def seen(share: float, runs: Sequence[Run] = self.runs[:_INPUTS], manner: str = EACH) -> bool:
            for run in runs:
                usual, faulty = self.probe.plain(run.feed), self.answer(run, max(share, least), name, manner)
                if usual is None or faulty is None:
                    continue
                if manner == EACH:
                    effects[share] = max(effects.get(share, 0.0), self.check.effect(run, usual, faulty))
                if self.check.sees(run, usual, faulty):
                    return True
            return False

        if seen(SMALL) or seen(SMALL, manner=TABLE):
            return SMALL
        if not effects:
            return _NOT_PLANTED
        if not seen(WHOLE):
            return None
        found, smaller = (LARGE, SMALL) if seen(LARGE) else (WHOLE, LARGE)
        if effects[found] * smaller / found <= 1:
            return _SLIGHT
        if seen(SMALL, self.runs[_INPUTS:]):
            return SMALL
        of_zeros = np.isinf(effects[SMALL])  # what is read of the table are zeros: a share of them is nothing
        return SMALL if of_zeros and seen(SMALL, manner=ADDED) else found


def _telling(runs: Sequence[Run]) -> list[Run]:
    """The runs, the first and the one with the largest inputs before the others: attention over one position, or a
    pool over one element, hides the weights behind it."""
    first, rest = list(runs[:1]), list(runs[1:])
    return first + sorted(rest, key=_elements, reverse=True)


def _elements(run: Run) -> int:
    return sum(value.size for value in run.feed.values.values() if isinstance(value, np.ndarray))
