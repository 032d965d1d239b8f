"""Dequantisation with one scale and one zero point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED, dequantize
from onnxsmith.exporter.translations.base import Sample, Translation


class DequantizePerTensor(Translation):
    """DequantizeLinear."""

    targets = ("quantized_decomposed::dequantize_per_tensor",)
    library = DECOMPOSED

    def decompose(
        self,
        q: Any,
        scale: Any,
        zero_point: Any,
        low: int,
        high: int,
        dtype: torch.dtype,
        out_dtype: torch.dtype | None = None,
    ) -> Any:
        return dequantize(q, scale, zero_point, low=low, high=high, dtype=out_dtype)

    def samples(self) -> Iterator[Sample]:
        q = torch.tensor([[-128, 0, 5], [7, 100, 127]], dtype=torch.int8)
        yield Sample((q, 0.5, 0, -128, 127, torch.int8), dynamic={0: {0: "n"}})
        yield Sample((q, 0.1, -7, -128, 127, torch.int8))
        yield Sample((q.clamp(0, 15), 0.1, 3, 0, 15, torch.int8))
        yield Sample((q.to(torch.int32) * 1000, 0.1, 3, -(2**31), 2**31 - 1, torch.int32))
        one, zero = torch.tensor([0.5], dtype=torch.float64), torch.tensor([4])
        yield Sample((q, one, zero, -128, 127, torch.int8), target=self.targets[0] + ".tensor")
        yield Sample((q, 0.5, 0, -128, 127, torch.int8), {"out_dtype": torch.float16})
        yield Sample((torch.tensor(3, dtype=torch.uint8), 0.1, 0, 0, 255, torch.uint8))
