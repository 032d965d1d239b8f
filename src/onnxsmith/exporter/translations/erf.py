"""`erf` of float64, for which ONNX Runtime has no operator."""

from __future__ import annotations

from typing import Any

import torch

from onnxsmith.exporter.translations._error_function import erf
from onnxsmith.exporter.translations._univariate import Univariate


class Erf(Univariate):
    """By `_error.erf`; other dtypes have an operator."""

    targets = ("aten::erf", "aten::special_erf", "prims::erf")
    points = (0.5, -1.5, 3.0, -5.0, 0.0, 1e-6, 6.5, 12.0, -0.25, float("inf"), -float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return erf(x)

    def decompose(self, self_: Any, *more: Any) -> Any:
        return super().decompose(self_) if self_.dtype == torch.float64 else NotImplemented
