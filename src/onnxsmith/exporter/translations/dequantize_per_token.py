"""Dequantisation with a scale for each row, computed at run time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED, dequantize_rows
from onnxsmith.exporter.translations.base import Sample, Translation


class DequantizePerToken(Translation):
    """Dequantised with one scale of 1, then multiplied by the scales of the rows."""

    targets = ("quantized_decomposed::dequantize_per_token",)
    library = DECOMPOSED

    def decompose(
        self,
        q: Any,
        scales: Any,
        zero_points: Any,
        low: int,
        high: int,
        dtype: torch.dtype,
        output_dtype: torch.dtype = torch.float32,
    ) -> Any:
        return dequantize_rows(q, scales, zero_points, output_dtype)

    def samples(self) -> Iterator[Sample]:
        q = torch.tensor([[-128, 0, 5], [7, 100, 127]], dtype=torch.int8)
        scales, zeros = torch.tensor([[0.5], [2.0]], dtype=torch.float64), torch.tensor([[0], [3]])
        yield Sample(
            (q, scales, zeros, -128, 127, torch.int8, torch.float32), dynamic={0: {0: "n"}, 1: {0: "n"}, 2: {0: "n"}}
        )
