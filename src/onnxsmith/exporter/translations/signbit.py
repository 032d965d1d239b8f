"""`signbit`: whether a number carries a minus, -0 included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Signbit(Translation):
    """True below zero, and for a zero whose reciprocal is below zero. ONNX operators cannot read the sign of a NaN; it
    counts as positive, like `float("nan")` and the NaNs that ARM computes."""

    targets = ("aten::signbit", "prims::signbit")

    def decompose(self, self_: Any) -> Any:
        if self_.dtype == torch.bool:
            return torch.zeros_like(self_)
        if not self_.is_floating_point():
            return self_ < 0
        return (self_ < 0) | ((self_ == 0) & (self_.reciprocal() < 0))

    def samples(self) -> Iterator[Sample]:
        values = [-2.0, -0.0, 0.0, 1.5, float("inf"), -float("inf"), float("nan"), -1e-45]
        for dtype in (torch.float32, torch.float64, torch.float16):
            yield Sample((torch.tensor(values, dtype=dtype),))
        yield Sample((torch.randn(3, 2),), dynamic={0: {0: "n"}})
        yield Sample((torch.tensor([-1, 0, 3]),))
        yield Sample((torch.tensor([True, False]),))
        yield Sample((torch.tensor(-0.0),))
        yield Sample((torch.zeros(0, 3),))
