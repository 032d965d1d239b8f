"""Quantisation with one scale and one zero point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED, quantize
from onnxsmith.exporter.translations.base import Sample, Translation


class QuantizePerTensor(Translation):
    """QuantizeLinear; a narrower range than the dtype's adds a Clip."""

    targets = ("quantized_decomposed::quantize_per_tensor",)
    library = DECOMPOSED

    def decompose(self, x: Any, scale: Any, zero_point: Any, low: int, high: int, dtype: torch.dtype) -> Any:
        return quantize(x, scale, zero_point, low, high, dtype)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        yield Sample((x, 1.0, 0, -128, 127, torch.int8), dynamic={0: {0: "n"}})
        yield Sample((x, 0.5, 3, 0, 127, torch.uint8))
        yield Sample((x, 0.25, -2, -7, 7, torch.int8))
        yield Sample((x, 0.25, 0, -(2**31), 2**31 - 1, torch.int32))
        one, zero = torch.tensor([0.5], dtype=torch.float64), torch.tensor([4])
        yield Sample((x, one, zero, 0, 255, torch.uint8), target=self.targets[0] + ".tensor")
        yield Sample((torch.tensor(3.3), 0.1, 0, -128, 127, torch.int8))
        yield Sample((torch.zeros(0, 2), 0.1, 0, -128, 127, torch.int8))
