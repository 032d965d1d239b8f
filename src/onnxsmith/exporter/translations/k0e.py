"""`special.scaled_modified_bessel_k0`: of the second kind, of order 0, times e^x."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._bessel import scaled_k
from onnxsmith.exporter.translations._univariate import Univariate


class K0e(Univariate):
    """By `_bessel.scaled_k`."""

    targets = ("aten::special_scaled_modified_bessel_k0",)
    points = (1.5, 0.25, 3.0, 7.5, 0.0, 1e-6, 2.0, 8.0, 8.5, 40.0, -1.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_k(0, x)
