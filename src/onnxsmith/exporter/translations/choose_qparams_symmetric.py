"""The scale from the largest magnitude."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED
from onnxsmith.exporter.translations.base import Sample, Translation


class ChooseQparamsSymmetric(Translation):
    """As torch.ao.quantization.utils.determine_qparams: the zero point is 0, or 128 for uint8."""

    targets = ("quantized_decomposed::choose_qparams_symmetric.tensor",)
    library = DECOMPOSED

    def decompose(self, x: Any, low: int, high: int, eps: float, dtype: torch.dtype) -> Any:
        most = x.to(torch.float32).abs().amax()
        scale = (most / (float(high - low) / 2)).clamp(min=eps).reshape(1).to(torch.float64)
        return scale, torch.full((1,), 128 if dtype == torch.uint8 else 0, dtype=torch.int64)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 4.0]])
        yield Sample((x, -128, 127, 1e-5, torch.int8))
        yield Sample((x * 0, -127, 127, 1e-5, torch.int8))
        yield Sample((x, 0, 255, 1e-5, torch.uint8), dynamic={0: {0: "n"}})
