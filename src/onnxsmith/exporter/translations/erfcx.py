"""`special.erfcx`: the complement of the error function, times e^x²."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._error_function import erfcx
from onnxsmith.exporter.translations._univariate import Univariate


class Erfcx(Univariate):
    """By `_error.erfcx`."""

    targets = (
        "aten::special_erfcx",
        "prims::erfcx",
    )
    points = (0.5, -1.5, 3.0, -5.0, 0.0, 1e-6, 6.5, 12.0, -0.25, float("inf"), -float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return erfcx(x)
