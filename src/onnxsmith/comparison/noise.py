"""How far apart right computations of one model are on one input.

Two kernels round differently, so their results differ; by how much depends on the model and the input, and a count of
operations knows neither. So the model is run again with what rounding does put in where it arises: inputs moved by an
ulp, weights by what the sums that read them are good to (`comparison/probe.py`). The outputs move by what such rounding
comes to there: little where a layer contracts, much where a difference of two large numbers is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxsmith.comparison.explore import Run
from onnxsmith.comparison.probe import Probe
from onnxsmith.comparison.tensors import Difference, difference
from onnxsmith.runtimes.base import Outputs

WORST = 8.0
"""How many times the largest movement that was seen the largest difference may be. Both sides round, which is √2 of
one; an output of ten thousand elements has extremes at four standard deviations, one of few elements at one; and the
movement is known from a few samples only."""
SPREAD = 4.0
"""The same in root mean square, which hardly depends on single elements."""
_FIRST, _ALL = 2, 6
"""Samples that are taken first, and where they do not explain a difference."""


@dataclass(frozen=True)
class Movement:
    """How far one output moves on one input: relative to its scale at most and in root mean square, in its own units
    at most, how many elements that have to be equal change, and `unsteady`, why its shape or its NaN do not stay as
    they are."""

    worst: float
    spread: float
    absolute: float
    changed: int
    unsteady: str = ""


class Noise:
    """Measures it, as often as it has to be known. Where the probe runs the very model that is the reference
    (`is_reference`), at another optimisation level for one, what the two differ by counts as well; where the reference
    is no graph, whole numbers move too, because nobody says which of two equal elements it takes. `other` is a probe
    of the candidate, for a candidate that may round more than the reference does and is right all the same."""

    def __init__(self, probe: Probe, *, is_reference: bool = True, other: Probe | None = None) -> None:
        self._probe = probe
        self._is_reference = is_reference
        self._other = other
        self._samples: dict[int, list[tuple[Outputs, Outputs]]] = {}
        self._kept: list[Run] = []

    def movement(self, run: Run, name: str, *, closely: bool = False) -> Movement | None:
        """What is known of output `name` on this input; more samples are taken `closely`. None where it cannot be
        known: the model does not run with other weights."""
        samples = self._taken(run, _ALL if closely else _FIRST)
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
            self._kept.append(run)  # its id stays its own
            self._samples[id(run)] = []
        known = self._samples[id(run)]
        usual = self._probe.plain(run.feed)
        if usual is not None and not known and self._is_reference:
            known.append((run.outputs, usual))
        if usual is None:
            return known
        for seed in range(sum(pair[0] is usual for pair in known), count):
            whole = run.feed.at_edges and not self._is_reference
            moved = self._probe.moved(run.feed, seed, whole=whole, inputs=not run.feed.meant)
            if moved is None:
                break
            known.append((usual, moved))
        if count == _ALL and self._other is not None:
            known = known + self._of_the_other(run)
        return known

    def _of_the_other(self, run: Run) -> list[tuple[Outputs, Outputs]]:
        assert self._other is not None
        usual = self._other.plain(run.feed)
        if usual is None:
            return []
        moved = (self._other.moved(run.feed, seed, inputs=not run.feed.meant) for seed in range(_FIRST))
        return [(usual, one) for one in moved if one is not None]


def _is_structure(found: Difference) -> bool:
    return bool(found.reason) and not found.unequal
