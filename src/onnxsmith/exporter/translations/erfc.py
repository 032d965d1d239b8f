"""`erfc`: the complement of the error function."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._error_function import erfc
from onnxsmith.exporter.translations._univariate import Univariate


class Erfc(Univariate):
    """By `_error.erfc`: 1 - erf(x), PyTorch's own translation, has no digits left beyond 4."""

    targets = (
        "aten::erfc",
        "aten::special_erfc",
        "prims::erfc",
    )
    points = (0.5, -1.5, 3.0, -5.0, 0.0, 1e-6, 6.5, 12.0, -0.25, float("inf"), -float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return erfc(x)
