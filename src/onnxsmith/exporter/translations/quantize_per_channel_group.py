"""Quantisation of a matrix with a scale for each group of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED, quantize
from onnxsmith.exporter.translations.base import Sample, Translation


class QuantizePerChannelGroup(Translation):
    """QuantizeLinear of the groups as rows, with an axis."""

    targets = ("quantized_decomposed::quantize_per_channel_group",)
    library = DECOMPOSED

    def decompose(
        self, x: Any, scales: Any, zero_points: Any, low: int, high: int, dtype: torch.dtype, group_size: int = 128
    ) -> Any:
        size = min(group_size, x.shape[-1])
        groups = x.reshape(-1, size)
        whole = groups * (1.0 / scales).to(x.dtype).reshape(-1, 1) + zero_points.to(x.dtype).reshape(-1, 1)
        return quantize(whole, 1.0, 0, low, high, dtype).reshape(x.shape)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5, 7.0], [1.5, 2.5, 400.0, -9.0]])
        scales, zeros = torch.tensor([[0.5, 1.0], [2.0, 0.25]]), torch.tensor([[0, 1], [-2, 0]], dtype=torch.int32)
        yield Sample((x, scales, zeros, -8, 7, torch.int8, 2))
        yield Sample((x, scales[:, :1], zeros[:, :1], -128, 127, torch.int8, 32))
