"""The cosine distance."""

from __future__ import annotations

import numpy as np

from onnxsmith.verification.metrics.base import Array, Floats, Metric, finite


class Cosine(Metric):
    """1 - cos of the angle between the two arrays, as vectors: 0 for equal directions, 1 for a right angle, 2 for
    opposite directions. It does not see scale. Two zero vectors are equal; a zero vector and another are at 1.

    Computed as |u - v|² / 2 for the unit vectors u and v (|u - v|² = 2 - 2 cos), because 1 minus a cosine near 1 would
    lose half of the digits.
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
    safe = vector / float(np.max(np.abs(vector)))  # prevents over- and underflow of the squares
    return safe / float(np.sqrt(np.sum(safe**2)))
