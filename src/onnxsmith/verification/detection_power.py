"""Measures the power of a check: plants small faults in the candidate and tests whether the check sees them.

A check passes for one of two reasons: nothing is wrong, or the check could not see a fault. Only the first reason
verifies the model. So after the outputs agreed, the candidate's weights are changed one at a time, each element by 1%
up or down. The new outputs are compared with the old outputs within the bounds of the check. If a fault is not seen, a
fault five times as large is planted, then one as large as the weight itself. If even this fault moves nothing, the
weight has no influence on these inputs, and the outputs cannot be wrong because of the weight. In 16-bit floats the
smallest fault is 5%.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from onnxsmith.base.report.parts.verification import FEW, Power
from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.budget import Budget
from onnxsmith.verification.explore import Run
from onnxsmith.verification.input_search import has_finite_output
from onnxsmith.verification.probe import ADDED, EACH, TABLE, Probe
from onnxsmith.verification.value_comparison import unit

SMALL, LARGE, WHOLE = 0.01, 0.05, 1.0
"""Sets the size of a planted fault, as a share of the weight. A choice."""
_STEPS = 8
"""Sets the smallest planted change, in roundings of the changed tensor's dtype. A choice: a smaller change would be
rounding."""
_NARROW = 2.0**-11
"""Holds the unit roundoff of float16. Faults in tensors of float16 or a coarser dtype are `LARGE` at least. A choice:
behind the rounding of a few dozen operations in float16, 1% of one weight is not seen in most networks."""
_NOT_PLANTED, _SLIGHT = -1.0, -2.0
"""Marks two results of `_least_seen` that are not a share: no fault could be planted, or its effect is no more than
rounding."""
MOST = 24
"""Limits the weights that are tried, evenly chosen from the first to the last. A choice: each weight needs a run of the
model."""
LEAST = 8
"""Counts the weights that are tried beside the first, if the budget allows no more. A choice."""
_ENOUGH = round(1 / FEW)
"""Counts the weights that have to move the outputs, so that a single missed weight is no more than a share of `FEW`."""
_INPUTS = 2
"""Counts the inputs on which a fault is tried first; the other inputs follow only if the fault is not seen. A choice,
to save runs."""

_SMALLER = 0.5
"""Sets the share of the first input's elements up to which a smaller input is tried before the first input. A choice: a
run that sees nothing is lost time."""


class Check(Protocol):
    """Holds the bounds that a check used on each run."""

    def sees(self, run: Run, usual: Outputs, faulty: Outputs) -> bool:
        """Whether the check sees a difference between `faulty` and `usual`."""

    def effect(self, run: Run, usual: Outputs, faulty: Outputs) -> float:
        """Returns the difference of the two outputs, in units of the usual difference of correct computations."""


def measured(
    probe: Probe,
    runs: Sequence[Run],
    check: Check,
    *,
    seed: int = 0,
    quantises: bool = False,
    budget: Budget | None = None,
) -> Power | None:
    """Counts the faults that the check sees. None if the model does not run with other weights, or holds no floats.
    With `quantises`, the model rounds intermediate values to steps, which may hide a small fault completely. `budget`
    says how many faults are worth their time; without it, all are."""
    budget = budget or Budget(thorough=True)
    usable = _usable(_largest_first(runs), probe)
    if not usable:
        return None
    weights = {weight.name: weight for weight in probe.weights if weight.name not in probe.settled}
    inputs = sorted(usable[0].feed.values)

    def in_weight(run: Run, share: float, name: str, manner: str) -> Outputs | None:
        return probe.faulty(run.feed, weights[name], share, seed, manner=manner)

    def in_input(run: Run, share: float, name: str, manner: str) -> Outputs | None:
        return probe.faulty_input(run.feed, name, share, seed, manner=manner)

    units = {name: unit(value) for name, value in usable[0].feed.values.items()}
    of_inputs = _Planting("inputs", inputs, usable, probe, check, in_input, units, budget)
    if not weights:
        return of_inputs.power()
    units = {
        name: 0.0 if weight.is_levels else unit(np.empty(0, weight.tensor.dtype.numpy()))
        for name, weight in weights.items()
    }
    found = _Planting("weights", list(weights), usable, probe, check, in_weight, units, budget, quantises).power()
    if found is None or found.moving:
        return found
    other = of_inputs.power()  # the weights are tables, and these inputs read no changed entry
    return replace(other, idle=found.tried) if other is not None and other.moving and not other.shortcoming() else found


@dataclass(frozen=True)
class _Planting:
    """Plants faults in the weights or inputs of these `names`, on the same few runs."""

    kind: str
    names: Sequence[str]
    runs: Sequence[Run]
    probe: Probe
    check: Check
    answer: Callable[[Run, float, str, str], Outputs | None]
    units: Mapping[str, float]
    """Holds the unit roundoff of each changed tensor: in bfloat16, 1% is only one or two roundings."""
    budget: Budget
    quantises: bool = False

    def power(self) -> Power | None:
        """Measures which faults the check sees; None if none can be planted."""
        few = len(self.names) <= MOST
        chosen = self.names if few else [self.names[i * (len(self.names) - 1) // (MOST - 1)] for i in range(MOST)]
        verdicts: dict[str, float | None] = {}
        begin = self.budget.spent()
        self._try(chosen[:1], verdicts, 0)
        rest = self.budget.few(chosen[1:], self.budget.spent() - begin, LEAST, f"faults in {self.kind}")
        self._try(rest, verdicts, FEW * (1 + len(rest)))
        more = [name for name in self.names if name not in {*chosen[:1], *rest}][:MOST]
        if _missed(verdicts) == 1 and _moving(verdicts) < _ENOUGH:
            # Many of the weights move nothing: one miss among the few others decides nothing yet.
            self._try(more, verdicts, 1)
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
            small=max(SMALL, _least(coarsest)),
            large=max(LARGE, _least(coarsest)),
        )

    def _try(self, names: Sequence[str], verdicts: dict[str, float | None], most: float) -> None:
        """Adds the smallest seen share for each name, until more than `most` names are missed."""
        for name in names:
            if _missed(verdicts) > most:
                break  # already enough to call the check weak
            found = self._least_seen(name)
            if found != _NOT_PLANTED:
                verdicts[name] = found

    def _least_seen(self, name: str) -> float | None:
        """Finds the smallest share at which the check sees the fault on any input. Returns None if it sees no fault,
        `_NOT_PLANTED` if the weight cannot be changed, `_SLIGHT` if a smaller fault has no more effect than
        rounding."""
        effects: dict[float, float] = {}
        least = _least(self.units.get(name, 0.0))

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

        if self._sees_on_a_small_input(name, max(SMALL, least)) or seen(SMALL) or seen(SMALL, manner=TABLE):
            return SMALL
        if not effects:
            return _NOT_PLANTED
        if not seen(WHOLE):
            return None
        if least >= LARGE:
            effects[LARGE] = effects[SMALL]  # the smallest fault was as large
        found, smaller = (LARGE, SMALL) if least < LARGE and seen(LARGE) else (WHOLE, LARGE)
        if min(effects[found] * smaller / found, effects.get(smaller, np.inf)) <= 1:
            return _SLIGHT
        if seen(SMALL, self.runs[_INPUTS:]):
            return SMALL
        if self.quantises and np.isinf(effects[SMALL]):
            return _SLIGHT  # the steps inside the model hide the fault: no bit of an output moves
        of_zeros = np.isinf(effects[SMALL])  # these inputs read zeros of the table only, and 1% of zero is no fault
        return SMALL if of_zeros and seen(SMALL, manner=ADDED) else found

    def _sees_on_a_small_input(self, name: str, share: float) -> bool:
        """Whether the check sees the fault on its smallest input, if this input is much smaller than the first. One
        input that shows the fault is enough, and a small input takes little time."""
        run = min((one for one in self.runs if _elements(one) and not _is_silent(one)), key=_elements, default=None)
        if run is None or _elements(run) > _elements(self.runs[0]) * _SMALLER:
            return False
        usual, faulty = self.probe.plain(run.feed), self.answer(run, share, name, EACH)
        return usual is not None and faulty is not None and self.check.sees(run, usual, faulty)


def _least(unit_roundoff: float) -> float:
    """Returns the smallest fault that is planted in a tensor of this unit roundoff, as a share."""
    return max(_STEPS * unit_roundoff, LARGE if unit_roundoff >= _NARROW else 0.0)


def _missed(verdicts: Mapping[str, float | None]) -> int:
    return sum(one in (LARGE, WHOLE) for one in verdicts.values())


def _moving(verdicts: Mapping[str, float | None]) -> int:
    return sum(one in (SMALL, LARGE, WHOLE) for one in verdicts.values())


def _usable(runs: Sequence[Run], probe: Probe) -> list[Run]:
    """Returns the runs, without the leading runs that the probe refuses. Later runs are mostly not needed, and are
    tested when a fault is tried on them."""
    found: list[Run] = []
    for index, run in enumerate(runs):
        if probe.plain(run.feed) is not None:
            found.append(run)
        if len(found) == _INPUTS:
            return [*found, *runs[index + 1 :]]
    return found


def _largest_first(runs: Sequence[Run]) -> list[Run]:
    """Orders the runs: the first run, then the runs with the largest inputs, because attention over one position, or a
    pool over one element, hides the weights before it. Runs without a finite number come last: NaN shows no fault."""
    first, rest = list(runs[:1]), list(runs[1:])
    return sorted(first + sorted(rest, key=_elements, reverse=True), key=_is_silent)


def _is_silent(run: Run) -> bool:
    return bool(run.outputs) and not has_finite_output(run.outputs)


def _elements(run: Run) -> int:
    return sum(value.size for value in run.feed.values.values() if isinstance(value, np.ndarray))
