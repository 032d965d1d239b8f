"""`digamma`: the derivative of the gamma function's logarithm."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._gamma import digamma
from onnxsmith.exporter.translations._univariate import Univariate


class Digamma(Univariate):
    """By `_gamma.digamma`."""

    targets = (
        "aten::digamma",
        "aten::special_digamma",
        "aten::special_psi",
        "prims::digamma",
    )
    points = (1.0, 2.5, 3.0, -1.5, 0.0, -0.0, 0.1, 7.5, 20.0, 1e5, -2.0, -0.3, -12.7, float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return digamma(x)
