"""Fake quantisation with a scale for each channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import dequantize, dtype_of, quantize
from onnxsmith.exporter.translations.base import Sample, Translation


class FakeQuantizePerChannel(Translation):
    """QuantizeLinear with an axis, a Clip for a narrow range, and DequantizeLinear."""

    targets = ("aten::fake_quantize_per_channel_affine",)
    functions = (torch.fake_quantize_per_channel_affine,)

    def decompose(self, x: Any, scale: Any, zero_point: Any, axis: int, low: int, high: int) -> Any:
        dtype = dtype_of(low, high)
        if dtype is None or zero_point.dtype.is_floating_point:
            return NotImplemented
        q = quantize(x, scale, zero_point, low, high, dtype, axis)
        return dequantize(q, scale, zero_point, low=low, high=high, axis=axis, dtype=x.dtype)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 400.0]])
        two, three = torch.tensor([0.5, 2.0]), torch.tensor([0.5, 1.0, 2.0])
        yield Sample((x, two, torch.tensor([0, 2], dtype=torch.int32), 0, -127, 127))
        yield Sample((x, three, torch.tensor([0, 2, 4], dtype=torch.int32), 1, 0, 255))
        yield Sample((x, two, torch.tensor([0, 0], dtype=torch.int32), 0, -8, 7))
