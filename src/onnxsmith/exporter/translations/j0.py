"""`special.bessel_j0`: the Bessel function of the first kind, of order 0."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from onnxsmith.exporter.translations._bessel import j
from onnxsmith.exporter.translations._univariate import Univariate
from onnxsmith.exporter.translations.base import Sample


class J0(Univariate):
    """By `_bessel.j`, with all digits of float64; PyTorch's own has seven to nine in places, whatever the dtype."""

    targets = (
        "aten::special_bessel_j0",
        "prims::bessel_j0",
    )
    points = (0.0, 1.5, -2.25, 4.5, 1e-6, -3.5, 3.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return j(0, x)

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)
        yield Sample((torch.tensor([7.5, 8.5, 30.0, 12.0]),))
