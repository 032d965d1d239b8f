"""`log1p`: log(1 + x), with all digits for small x."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._univariate import Univariate


class Log1p(Univariate):
    """What 1 + x = w loses of x when it is rounded comes back by log(w)·x / (w - 1) (Kahan). In float64, as all
    functions of one number here; for a float32 that leaves nothing to be seen of it."""

    targets = ("aten::log1p", "aten::special_log1p", "prims::log1p")
    points = (0.0, 1.5, 1e-9, -1e-7, -0.5, 1e-4, 30.0, 1e20, -1.0, -2.0, float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        whole = 1 + x
        exact = (whole == 1) | x.isinf()
        found = whole.log() * (x / torch.where(exact, 1.0, whole - 1))
        return torch.where(exact, x, found)
