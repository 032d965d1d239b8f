"""Compares the distances of two values from the float64 value, for models that compute in many steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.value_comparison import difference, is_float

_AS_FAR = 4.0
"""Limits the candidate's distance from float64, in multiples of the reference's distance. A choice: two roundings of a
recurrence end at different distances, and a wrong state is orders of magnitude further."""


def as_near(exact: Any, ours: Any, theirs: Any) -> bool:
    """Whether the candidate's values `theirs` are about as near to the `exact` values as the reference's values `ours`.
    False if the values are no floats, or if the shapes differ."""
    if not is_float(ours) or np.shape(ours) != np.shape(theirs) or np.shape(exact) != np.shape(ours):
        return False
    truth = widen(np.asarray(exact))
    own = difference(truth, widen(np.asarray(ours)), np.inf)
    found = difference(truth, widen(np.asarray(theirs)), _AS_FAR * own.worst_rel, _AS_FAR * own.worst_abs)
    return not own.reason and not found.reason
