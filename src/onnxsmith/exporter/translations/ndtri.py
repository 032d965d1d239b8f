"""`special.ndtri`: the quantiles of the normal distribution."""

from __future__ import annotations

import math

import torch

from onnxsmith.exporter.translations._error_function import erfinv, lower_tail
from onnxsmith.exporter.translations._univariate import Univariate


class Ndtri(Univariate):
    """√2·erfinv(2p - 1), and for small p, of which that keeps nothing, by `_error.lower_tail`."""

    targets = ("aten::special_ndtri", "prims::ndtri")
    points = (0.5, 0.25, 1.0, 0.0, 1e-30, 0.135, 0.136, 0.9999, 0.87, 1e-7, -0.5, 1.5, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x < math.exp(-2), -lower_tail(x), math.sqrt(2) * erfinv(2 * x - 1))
