"""Quantisation with a scale for each channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED, quantize
from onnxsmith.exporter.translations.base import Sample, Translation


class QuantizePerChannel(Translation):
    """QuantizeLinear with an axis; a narrower range than the dtype's adds a Clip."""

    targets = ("quantized_decomposed::quantize_per_channel",)
    library = DECOMPOSED

    def decompose(
        self, x: Any, scales: Any, zero_points: Any, axis: int, low: int, high: int, dtype: torch.dtype
    ) -> Any:
        return quantize(x, scales, zero_points, low, high, dtype, axis)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        two, three = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
        yield Sample((x, two, torch.tensor([0, 0]), 0, -128, 127, torch.int8))
        yield Sample((x, three, torch.tensor([0, 2, 4]), 1, 0, 127, torch.uint8))
        yield Sample((x, two, torch.tensor([0, 0]), 0, -(2**31), 2**31 - 1, torch.int32))
        yield Sample((x[:1], two[:1], torch.tensor([1]), 0, -127, 127, torch.int8))
