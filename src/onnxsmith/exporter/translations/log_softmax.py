"""`log_softmax` into another dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class LogSoftmax(Translation):
    """The tensor is cast before, not after."""

    targets = ("aten::log_softmax.int",)

    def decompose(self, x: Any, dim: int, dtype: torch.dtype | None = None) -> Any:
        return NotImplemented if dtype in (None, x.dtype) else x.to(dtype).log_softmax(dim)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), 1, torch.float64))
        yield Sample((torch.randint(0, 5, (3, 4)), 0, torch.float32))
        yield Sample((torch.tensor(2.0), 0, torch.float64))
        yield Sample((torch.randn(3, 4), -1), dynamic={0: {0: "n"}})
