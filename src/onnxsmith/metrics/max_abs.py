"""The largest absolute difference."""

from __future__ import annotations

import numpy as np

from onnxsmith.metrics.base import Floats, Metric


class MaxAbs(Metric):
    """max |reference - candidate|, in the units of the output."""

    title = "largest absolute difference"

    def measure(self, reference: Floats, candidate: Floats) -> float:
        return float(np.max(np.abs(reference - candidate)))
