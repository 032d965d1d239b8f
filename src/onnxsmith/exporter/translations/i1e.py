"""`special.i1e`: the modified Bessel function of the first kind, of order 1, times e^-|x|."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._bessel import scaled_i
from onnxsmith.exporter.translations._univariate import Univariate


class I1e(Univariate):
    """By `_bessel.scaled_i`."""

    targets = (
        "aten::special_i1e",
        "prims::bessel_i1e",
    )
    points = (0.0, 1.5, -2.25, 8.0, 1e-6, -7.5, 9.5, 30.0, -12.0, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_i(1, x)
