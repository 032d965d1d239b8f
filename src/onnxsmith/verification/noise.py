"""Measures the difference of correct computations of one model on one input.

Two kernels round differently, so their results differ. The size of the difference depends on the model and the input,
and a count of operations does not show this. So the model is run again with the effect of rounding added where rounding
arises. Inputs are moved by one ulp, weights by the error of the sums that read them (`verification/probe.py`). The
outputs then move as if by rounding: little if a layer contracts, much if two large numbers are subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.explore import Run
from onnxsmith.verification.free_values import Free
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.value_comparison import Difference, difference

WORST = 8.0
"""Limits the difference, in multiples of the largest measured movement. A choice, for three reasons: both sides round
(√2); an output of ten thousand elements has extremes at four standard deviations, an output of few elements at one; the
movement is measured on a few samples only."""
SPREAD = 4.0
"""Limits the difference in root mean square, in multiples of the movement's root mean square. A choice: smaller than
WORST, because single elements hardly affect a mean."""
FIRST, SECOND, ALL = 1, 2, 6
"""Counts the samples that are taken at first, and the samples in all if these do not explain a difference. A choice:
each sample is a run."""


@dataclass(frozen=True)
class Movement:
    """Holds the movement of one output on one input. `worst` and `spread` (root mean square) are relative to the
    output's scale, `absolute` is in its units. `changed` is the number of integers, bools or strings that change.
    `unsteady` says why the shape or the places of NaN change."""

    worst: float
    spread: float
    absolute: float
    changed: int
    unsteady: str = ""


class Noise:
    """Measures the movement of outputs, with as many samples as needed.

    If the probe runs the reference's own model (`is_reference`), the difference between probe and reference counts as
    movement too: the probe may run at another optimisation level. If the reference is no graph, whole numbers are moved
    as well, because ties between equal elements may be broken either way. `other` is a probe of the candidate, because
    a correct candidate may round more than the reference.
    """

    def __init__(self, probe: Probe, *, is_reference: bool = True, other: Probe | None = None) -> None:
        self._probe = probe
        self._is_reference = is_reference
        self._other = other
        self.free = Free()
        """Says which outputs are free up to a sign or an order: turning a vector is no movement."""
        self._samples: dict[int, list[tuple[Outputs, Outputs]]] = {}
        self._kept: list[Run] = []

    def movement(self, run: Run, name: str, samples_in_all: int = SECOND) -> Movement | None:
        """Returns the movement of output `name` on this input, in at least so many samples. Returns None if the
        movement is unknown, because the model does not run with other weights."""
        samples = self._taken(run, samples_in_all)
        if not samples:
            return None
        found = [difference(usual[name], moved[name], np.inf, np.inf) for usual, moved in samples if name in moved]
        if not found:
            return None
        return Movement(
            max(one.worst_rel for one in found),
            max(one.spread for one in found),
            max(one.worst_abs for one in found),
            max(one.unequal for one in found),
            next((one.reason for one in found if _is_structure(one)), ""),
        )

    def _taken(self, run: Run, count: int) -> list[tuple[Outputs, Outputs]]:
        if id(run) not in self._samples:
            self._kept.append(run)  # keeps the run alive, so that its id is not reused
            self._samples[id(run)] = []
        known = self._samples[id(run)]
        usual = self._probe.plain(run.feed)
        if usual is not None and not known and self._is_reference:
            known.append((run.outputs, self.free.aligned(run.outputs, usual)))
        if usual is None:
            return known
        for seed in range(sum(pair[0] is usual for pair in known), count):
            whole = run.feed.at_edges and not self._is_reference
            moved = self._probe.moved(
                run.feed, seed, whole=whole, inputs=not run.feed.meant, ties=not self._is_reference
            )
            if moved is None:
                break
            known.append((usual, self.free.aligned(usual, moved)))
        if count == ALL and self._other is not None:
            known = known + self._of_the_other(run)
        return known

    def _of_the_other(self, run: Run) -> list[tuple[Outputs, Outputs]]:
        assert self._other is not None
        usual = self._other.plain(run.feed)
        if usual is None:
            return []
        moved = (self._other.moved(run.feed, seed, inputs=not run.feed.meant) for seed in range(SECOND))
        return [(usual, self.free.aligned(usual, one)) for one in moved if one is not None]


def _is_structure(found: Difference) -> bool:
    return bool(found.reason) and not found.unequal
