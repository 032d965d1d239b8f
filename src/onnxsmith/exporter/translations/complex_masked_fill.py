"""`masked_fill` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexMaskedFill(Translation):
    """Both parts where the mask is true."""

    targets = ("aten::masked_fill",)

    def decompose(self, self_: Any, mask: Any, value: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(torch.where(mask.unsqueeze(-1), parts(value, self_.dtype), parts(self_)))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), torch.rand(3, 4) > 0.5, 0), dynamic={0: {0: "n"}, 1: {0: "n"}})
        yield Sample((numbers(3, 4), torch.rand(4) > 0.5, 1 - 2j))
        yield Sample((numbers(3, 4), torch.rand(3, 1) > 0.5, torch.tensor(2.0)))
