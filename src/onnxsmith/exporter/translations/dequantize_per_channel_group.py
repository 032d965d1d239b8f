"""Dequantisation of a matrix with a scale for each group of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED, dequantize
from onnxsmith.exporter.translations.base import Sample, Translation


class DequantizePerChannelGroup(Translation):
    """DequantizeLinear in blocks, opset 21."""

    targets = ("quantized_decomposed::dequantize_per_channel_group",)
    library = DECOMPOSED

    def decompose(
        self,
        q: Any,
        scales: Any,
        zero_points: Any,
        low: int,
        high: int,
        dtype: torch.dtype,
        group_size: int = 128,
        output_dtype: torch.dtype = torch.float32,
    ) -> Any:
        size = min(group_size, q.shape[-1])
        scales = scales.reshape(q.shape[0], -1)
        zeros = None if zero_points is None else zero_points.reshape(q.shape[0], -1)
        return dequantize(q, scales, zeros, low=low, high=high, axis=1, block=size, dtype=output_dtype)

    def samples(self) -> Iterator[Sample]:
        q = torch.tensor([[-8, 0, 5, 7], [7, 1, 3, -4]], dtype=torch.int8)
        scales, zeros = torch.tensor([[0.5, 1.0], [2.0, 0.25]]), torch.tensor([[0, 1], [-2, 0]], dtype=torch.int32)
        yield Sample((q, scales, zeros, -8, 7, torch.int8, 2, torch.float32))
        yield Sample((q, scales, None, -128, 127, torch.int8, 2, torch.float32))
        yield Sample((q, scales, torch.tensor([[0.5, 1.0], [2.0, 0.25]]), -8, 7, torch.int8, 2, torch.float32))
        yield Sample((q, scales[:, :1], zeros[:, :1], -128, 127, torch.int8, 32, torch.float32))
