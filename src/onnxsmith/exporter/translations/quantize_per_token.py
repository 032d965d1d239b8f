"""Quantisation with a scale for each row, computed at run time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED, quantize
from onnxsmith.exporter.translations.base import Sample, Translation


class QuantizePerToken(Translation):
    """The rows are divided by their scales, then quantised with one scale of 1."""

    targets = ("quantized_decomposed::quantize_per_token",)
    library = DECOMPOSED

    def decompose(self, x: Any, scales: Any, zero_points: Any, low: int, high: int, dtype: torch.dtype) -> Any:
        whole = x * (1.0 / scales).to(x.dtype) + zero_points.to(x.dtype)
        return quantize(whole, 1.0, 0, low, high, dtype)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        scales = torch.tensor([[0.5], [2.0]], dtype=torch.float64)
        yield Sample(
            (x, scales, torch.tensor([[0], [3]]), -128, 127, torch.int8),
            dynamic={0: {0: "n"}, 1: {0: "n"}, 2: {0: "n"}},
        )
        yield Sample((x, scales, torch.tensor([[0], [3]]), -7, 7, torch.int8))
