"""`frexp`: a number as a fraction in [½, 1) times a power of two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._binary import exponent
from onnxsmith.exporter.translations.base import Sample, Translation


class Frexp(Translation):
    """The exponent, and the number over that power of two, which is exact. 0, infinities and NaN are their own
    fraction, with exponent 0."""

    targets = ("aten::frexp", "prims::frexp")

    def decompose(self, self_: Any) -> Any:
        found, power = exponent(self_)
        own = (self_ == 0) | ~self_.isfinite()
        fraction = torch.where(own, self_, self_ / torch.where(own, 1.0, power) * 0.5)
        return fraction, torch.where(own, 0, found + 1).to(torch.int32)

    def samples(self) -> Iterator[Sample]:
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 3e38, 1e-38, 7e-45, 1e-45, float("inf"), float("nan"), 0.9999999, 8.0]
        yield Sample((torch.randn(3, 4) * 100,), dynamic={0: {0: "n"}})
        yield Sample((torch.tensor(values),))
        yield Sample((torch.tensor([*values, 5e-324, 1.7e308, 1e-310], dtype=torch.float64),))
        yield Sample((torch.tensor(-6.5),))
        yield Sample((torch.zeros(0, 3),))
