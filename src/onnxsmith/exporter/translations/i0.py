"""`i0`: the modified Bessel function of the first kind, of order 0."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._bessel import scaled_i
from onnxsmith.exporter.translations._univariate import Univariate


class I0(Univariate):
    """It grows as e^x; what is left is `_bessel.scaled_i`."""

    targets = (
        "aten::i0",
        "aten::special_i0",
        "prims::bessel_i0",
        "aten::special_modified_bessel_i0",
    )
    points = (0.0, 1.5, -2.25, 8.0, 1e-6, -7.5, 9.5, 30.0, -12.0, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return scaled_i(0, x) * x.abs().exp()
