"""`uniform`: numbers drawn evenly from a range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class Uniform(Translation):
    """ONNX's RandomUniformLike."""

    targets = ("aten::uniform",)

    def decompose(self, x: Any, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Any:
        del generator
        return onnx_op("RandomUniformLike", x, low=float(low), high=float(high))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), 2.0, 2.0))
        yield Sample((torch.randn(3, dtype=torch.float64), 2.0, 2.0), dynamic={0: {0: "n"}})
