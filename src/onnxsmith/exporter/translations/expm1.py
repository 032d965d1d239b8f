"""`expm1`: eˣ - 1, with all digits for small x."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._univariate import Univariate


class Expm1(Univariate):
    """What eˣ = w loses when it is rounded comes back by (w - 1)·x / log(w) (Kahan)."""

    targets = ("aten::expm1", "aten::special_expm1", "prims::expm1")
    points = (0.0, 1.5, 1e-9, -1e-7, -0.5, 1e-4, 30.0, -40.0, -1.0, 1000.0, float("inf"), -float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        whole = x.exp()
        plain = (whole == 1) | (whole < 1e-10) | whole.isinf()
        found = (whole - 1) * x / torch.where(plain, 2.0, whole).log()
        return torch.where(whole == 1, x, torch.where(plain, whole - 1, found))
