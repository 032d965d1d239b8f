"""`special.bessel_y0`: the Bessel function of the second kind, of order 0."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from onnxsmith.exporter.translations._bessel import y
from onnxsmith.exporter.translations._univariate import Univariate
from onnxsmith.exporter.translations.base import Sample


class Y0(Univariate):
    """By `_bessel.y`, with all digits of float64; PyTorch's own has seven to nine in places, whatever the dtype."""

    targets = ("aten::special_bessel_y0",)
    points = (1.5, 0.25, 3.0, 4.5, 0.0, 1e-6, 2.0, -1.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        return y(0, x)

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)
        yield Sample((torch.tensor([7.5, 8.5, 30.0, 12.0]),))
