"""`log_sigmoid`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class LogSigmoid(Translation):
    """min(x, 0) - log(1 + exp(-|x|)). The logarithm of a sigmoid loses what a float32 sigmoid has lost already where it
    is near 0: at -10 the result was off by one part in ten thousand."""

    targets = ("aten::log_sigmoid",)

    def decompose(self, x: Any) -> Any:
        return x.clamp(max=0) - (-x.abs()).exp().log1p()

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor([-100.0, -20.0, -10.5, -1.0, 0.0, 1.0, 10.0, 100.0]),))
        yield Sample((torch.randn(3, 4, dtype=torch.float64) * 5,), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(()),))
