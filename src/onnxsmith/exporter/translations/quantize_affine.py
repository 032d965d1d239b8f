"""Quantisation of torchao: one scale for each block of the given sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import QUANTIZED, as_blocks, quantize_rows
from onnxsmith.exporter.translations.base import Sample, Translation


class QuantizeAffine(Translation):
    """Scales that are computed at run time divide the rows first; see `_quantizing.quantize_rows`."""

    targets = ("torchao::quantize_affine",)
    library = "torchao.quantization"

    def decompose(
        self,
        x: Any,
        block_size: Any,
        scale: Any,
        zero_point: Any,
        output_dtype: torch.dtype,
        quant_min: Any = None,
        quant_max: Any = None,
    ) -> Any:
        if output_dtype not in QUANTIZED:
            return NotImplemented
        limits = torch.iinfo(output_dtype)
        low = limits.min if quant_min is None else int(quant_min)
        high = limits.max if quant_max is None else int(quant_max)
        given = zero_point is not None and zero_point.numel()
        grouped, one = as_blocks(x.shape, block_size)
        zeros = zero_point.reshape(one) if given else None
        return quantize_rows(x.reshape(grouped), scale.reshape(one), zeros, low, high, output_dtype).reshape(x.shape)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5, 7.0], [1.5, 2.5, 400.0, -9.0]])
        rows, groups = torch.tensor([[0.5], [2.0]]), torch.tensor([[0.5, 1.0], [2.0, 0.25]])
        yield Sample((x, [1, 4], rows, torch.tensor([[0], [3]], dtype=torch.int8), torch.int8))
        yield Sample((x, [1, 2], groups, torch.tensor([[0, 1], [3, 2]], dtype=torch.int8), torch.int8, -8, 7))
        yield Sample((x, [2, 4], torch.tensor(0.5), torch.tensor(3), torch.uint8, 0, 255))
