"""`erfinv`: the inverse of the error function."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._error_function import erfinv
from onnxsmith.exporter.translations._univariate import Univariate


class Erfinv(Univariate):
    """By `_error.erfinv`."""

    targets = (
        "aten::erfinv",
        "aten::special_erfinv",
        "prims::erf_inv",
    )
    points = (0.5, -0.25, 1.0, -1.0, 0.0, 0.72, 0.74, -0.999, 0.9999999, 1e-9, 1.5, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return erfinv(x)
