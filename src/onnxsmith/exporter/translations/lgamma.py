"""`lgamma`: the logarithm of the gamma function's absolute value."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._gamma import lgamma
from onnxsmith.exporter.translations._univariate import Univariate


class Lgamma(Univariate):
    """By `_gamma.lgamma`."""

    targets = (
        "aten::lgamma",
        "aten::special_gammaln",
        "prims::lgamma",
    )
    points = (
        1.0,
        2.5,
        3.0,
        -1.5,
        0.0,
        0.1,
        1e-9,
        7.5,
        20.0,
        1e5,
        -2.0,
        -0.3,
        -12.7,
        float("inf"),
        -float("inf"),
        float("nan"),
    )

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return lgamma(x)
