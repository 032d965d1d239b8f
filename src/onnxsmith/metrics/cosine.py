"""The cosine distance."""

from __future__ import annotations

import numpy as np

from onnxsmith.metrics.base import Array, Floats, Metric, finite


class Cosine(Metric):
    """1 - cos of the angle between the two, all elements as one vector: 0 for one direction, 1 for a right angle, 2 for
    opposite ones. Blind to scale. Two vectors of zeros are equal; a vector of zeros and another are at 1.

    Computed as |u - v|² / 2 for the unit vectors u and v (|u - v|² = 2 - 2 cos): 1 minus a cosine near 1 would lose
    half of the digits.
    """

    title = "cosine distance"

    def measure(self, reference: Array, candidate: Array) -> float:
        a, b = finite(reference, candidate)
        if not a.size:
            return float("nan")
        if not a.any() or not b.any():
            return float(a.any() != b.any())
        return float(np.sum((_unit(a) - _unit(b)) ** 2) / 2)


def _unit(vector: Floats) -> Floats:
    safe = vector / float(np.max(np.abs(vector)))  # squares neither overflow nor vanish
    return safe / float(np.sqrt(np.sum(safe**2)))
