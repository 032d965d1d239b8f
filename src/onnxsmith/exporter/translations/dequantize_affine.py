"""Dequantisation of torchao: one scale for each block of the given sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import QUANTIZED, as_blocks, blocked_axis, dequantize, dequantize_rows
from onnxsmith.exporter.translations.base import Sample, Translation


class DequantizeAffine(Translation):
    """DequantizeLinear with an axis or in blocks (opset 21) for a stored weight; for blocks of several
    axes, one scale of 1, with the scales multiplied behind it."""

    targets = ("torchao::dequantize_affine",)
    library = "torchao.quantization"

    def decompose(
        self,
        q: Any,
        block_size: Any,
        scale: Any,
        zero_point: Any,
        input_dtype: torch.dtype,
        quant_min: Any = None,
        quant_max: Any = None,
        output_dtype: torch.dtype = torch.float32,
    ) -> Any:
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
        yield Sample(
            (q[None], [1, 2, 2], torch.tensor([[[0.5, 1.0]]]), torch.tensor([[[0, 1]]], dtype=torch.int8), torch.int8)
        )
