"""`special.spherical_bessel_j0`: sin(x)/x."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._univariate import Univariate


class SphericalBesselJ0(Univariate):
    """1 at 0, and 0 at infinity (DLMF 10.49.3)."""

    targets = ("aten::special_spherical_bessel_j0", "prims::spherical_bessel_j0")
    points = (0.0, 1.5, -2.25, 0.3, 1e-6, 9.5, 30.0, -12.0, float("inf"), float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.where((x == 0) | x.isinf(), 1.0, x)
        return torch.where(x.isinf(), 0.0, torch.where(x == 0, 1.0, inner.sin() / inner))
