"""Dequantisation with a scale for each channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED, dequantize
from onnxsmith.exporter.translations.base import Sample, Translation


class DequantizePerChannel(Translation):
    """DequantizeLinear with an axis. Zero points that are floats are subtracted behind it."""

    targets = ("quantized_decomposed::dequantize_per_channel",)
    library = DECOMPOSED

    def decompose(
        self,
        q: Any,
        scales: Any,
        zero_points: Any,
        axis: int,
        low: int,
        high: int,
        dtype: torch.dtype,
        out_dtype: torch.dtype | None = None,
    ) -> Any:
        return dequantize(q, scales, zero_points, low=low, high=high, axis=axis, dtype=out_dtype)

    def samples(self) -> Iterator[Sample]:
        q = torch.tensor([[-128, 0, 5], [7, 100, 127]], dtype=torch.int8)
        two, three = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
        yield Sample((q, two, torch.tensor([0, 3]), 0, -128, 127, torch.int8))
        yield Sample((q, three, None, 1, -128, 127, torch.int8))
        yield Sample((q, three, torch.tensor([0.5, 1.25, 0.0]), 1, -128, 127, torch.int8))
        yield Sample((q.to(torch.int32), two, torch.tensor([0, 3]), 0, -(2**31), 2**31 - 1, torch.int32))
        yield Sample((q[:1], two[:1], torch.tensor([1]), 0, -128, 127, torch.int8), {"out_dtype": torch.float32})
