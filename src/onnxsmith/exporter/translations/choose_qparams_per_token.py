"""The scale of each row from its largest magnitude."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._quantizing import DECOMPOSED
from onnxsmith.exporter.translations.base import Sample, Translation


class ChooseQparamsPerToken(Translation):
    """The largest magnitude, at least 1e-5, becomes 127; the zero points are 0."""

    targets = ("quantized_decomposed::choose_qparams_per_token",)
    library = DECOMPOSED

    def decompose(self, x: Any, dtype: torch.dtype) -> Any:
        scales = x.abs().amax(dim=-1, keepdim=True).to(torch.float32).clamp(min=1e-5) / 127
        return scales, torch.zeros_like(scales)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[-3.0, 0.49, 0.5], [1.5, 2.5, 4.0]])
        yield Sample((x, torch.int8), dynamic={0: {0: "n"}})
        yield Sample((x * 0, torch.int8))
