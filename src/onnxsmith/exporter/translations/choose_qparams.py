"""Scale and zero point from the smallest and the largest element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED
from onnxsmith.exporter.translations.base import Sample, Translation


class ChooseQparams(Translation):
    """As torch.ao.quantization.utils.determine_qparams; 0 is in the range."""

    targets = ("quantized_decomposed::choose_qparams.tensor",)
    library = DECOMPOSED

    def decompose(self, x: Any, low: int, high: int, eps: float, dtype: torch.dtype) -> Any:
        least, most = x.to(torch.float32).amin().clamp(max=0.0), x.to(torch.float32).amax().clamp(min=0.0)
        scale = ((most - least) / float(high - low)).clamp(min=eps)
        zero = (low - torch.round(least / scale)).clamp(low, high)
        return scale.reshape(1).to(torch.float64), zero.reshape(1).to(torch.int64)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 4.0]])
        for one in (x, x.abs(), -x.abs(), x * 0):
            yield Sample((one, -128, 127, 1e-5, torch.int8))
        yield Sample((x, 0, 255, 1e-5, torch.uint8), dynamic={0: {0: "n"}})
