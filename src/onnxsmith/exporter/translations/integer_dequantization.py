"""Dequantises integers: by one scale, or by one for each channel, group, row or block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import (
    QUANTIZED,
    Decomposed,
    as_blocks,
    blocked_axis,
    dequantize,
    dequantize_rows,
)
from onnxsmith.exporter.translations.base import Sample, Translation


class DequantizePerTensor(Decomposed, targets="quantized_decomposed::dequantize_per_tensor"):
    """Dequantises with one scale and one zero point by DequantizeLinear."""

    def decompose(
        self, q: Any, scale: Any, zero_point: Any, low: int, high: int, dtype: torch.dtype,
        out_dtype: torch.dtype | None = None,
    ) -> Any:  # fmt: skip
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


class DequantizePerChannel(Decomposed, targets="quantized_decomposed::dequantize_per_channel"):
    """Dequantises with a scale for each channel by DequantizeLinear with an axis. Float zero points are subtracted
    afterwards."""

    def decompose(
        self, q: Any, scales: Any, zero_points: Any, axis: int, low: int, high: int, dtype: torch.dtype,
        out_dtype: torch.dtype | None = None,
    ) -> Any:  # fmt: skip
        return dequantize(q, scales, zero_points, low=low, high=high, axis=axis, dtype=out_dtype)

    def samples(self) -> Iterator[Sample]:
        q = torch.tensor([[-128, 0, 5], [7, 100, 127]], dtype=torch.int8)
        two, three = torch.tensor([0.5, 2.0], dtype=torch.float64), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
        yield Sample((q, two, torch.tensor([0, 3]), 0, -128, 127, torch.int8))
        yield Sample((q, three, None, 1, -128, 127, torch.int8))
        yield Sample((q, three, torch.tensor([0.5, 1.25, 0.0]), 1, -128, 127, torch.int8))
        yield Sample((q.to(torch.int32), two, torch.tensor([0, 3]), 0, -(2**31), 2**31 - 1, torch.int32))
        yield Sample((q[:1], two[:1], torch.tensor([1]), 0, -128, 127, torch.int8), {"out_dtype": torch.float32})


class DequantizePerChannelGroup(Decomposed, targets="quantized_decomposed::dequantize_per_channel_group"):
    """Dequantises a matrix with a scale for each group of a row by DequantizeLinear in blocks (opset 21)."""

    def decompose(
        self, q: Any, scales: Any, zero_points: Any, low: int, high: int, dtype: torch.dtype, group_size: int = 128,
        output_dtype: torch.dtype = torch.float32,
    ) -> Any:  # fmt: skip
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


class DequantizePerToken(Decomposed, targets="quantized_decomposed::dequantize_per_token"):
    """Dequantises with a scale for each row, computed at run time: with the scale 1, then a product with the row
    scales."""

    def decompose(
        self, q: Any, scales: Any, zero_points: Any, low: int, high: int, dtype: torch.dtype,
        output_dtype: torch.dtype = torch.float32,
    ) -> Any:  # fmt: skip
        return dequantize_rows(q, scales, zero_points, output_dtype)

    def samples(self) -> Iterator[Sample]:
        q = torch.tensor([[-128, 0, 5], [7, 100, 127]], dtype=torch.int8)
        scales, zeros = torch.tensor([[0.5], [2.0]], dtype=torch.float64), torch.tensor([[0], [3]])
        rows = {0: {0: "n"}, 1: {0: "n"}, 2: {0: "n"}}
        yield Sample((q, scales, zeros, -128, 127, torch.int8, torch.float32), dynamic=rows)


class DequantizeAffine(Translation, targets="torchao::dequantize_affine", library="torchao.quantization"):
    """Dequantises with a scale for each block of the given sizes (torchao), by DequantizeLinear with an axis or in
    blocks.

    Blocks need opset 21. Blocks of several axes are dequantised with the scale 1, then multiplied by their scales.
    """

    def decompose(
        self, q: Any, block_size: Any, scale: Any, zero_point: Any, input_dtype: torch.dtype, quant_min: Any = None,
        quant_max: Any = None, output_dtype: torch.dtype = torch.float32,
    ) -> Any:  # fmt: skip
        if q.dtype not in QUANTIZED:
            return NotImplemented
        given = zero_point is not None and zero_point.numel()
        found = blocked_axis(q.shape, block_size)
        if found is None:
            grouped, one = as_blocks(q.shape, block_size)
            zeros = zero_point.reshape(one) if given else None
            return dequantize_rows(q.reshape(grouped), scale.reshape(one), zeros, output_dtype).reshape(q.shape)
        axis, block = found
        form = [size // by for size, by in zip(q.shape, block_size, strict=True)] if block else [-1]
        zeros = zero_point.reshape(form) if given else None
        low, high = (None, None) if quant_min is None else (int(quant_min), int(quant_max))
        return dequantize(q, scale.reshape(form), zeros, low=low, high=high, axis=axis, block=block, dtype=output_dtype)

    def samples(self) -> Iterator[Sample]:
        q = torch.tensor([[-8, 0, 5, 7], [7, 1, 3, -4]], dtype=torch.int8)
        rows, groups = torch.tensor([[0.5], [2.0]]), torch.tensor([[0.5, 1.0], [2.0, 0.25]])
        yield Sample((q, [1, 4], rows, torch.tensor([[0], [3]], dtype=torch.int8), torch.int8))
        yield Sample((q, [1, 2], groups, torch.tensor([[0, 1], [3, 2]], dtype=torch.int8), torch.int8, -8, 7))
        yield Sample((q, [2, 4], torch.tensor(0.5), torch.tensor(3, dtype=torch.int8), torch.int8))
        squares, zeros = torch.tensor([[[0.5, 1.0]]]), torch.tensor([[[0, 1]]], dtype=torch.int8)
        yield Sample((q[None], [1, 2, 2], squares, zeros, torch.int8))
