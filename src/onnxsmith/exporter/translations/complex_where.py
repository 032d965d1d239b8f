"""`where` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexWhere(Translation):
    """Both parts by one condition."""

    targets = ("aten::where.self",)

    def decompose(self, condition: Any, self_: Any, other: Any) -> Any:
        if not (self_.dtype.is_complex and self_.dtype == other.dtype):
            return NotImplemented
        parts = torch.view_as_real(self_), torch.view_as_real(other)
        return torch.view_as_complex(torch.where(condition.unsqueeze(-1), *parts))

    def samples(self) -> Iterator[Sample]:
        yield Sample(
            (torch.randn(3, 4) > 0, torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4, dtype=torch.complex64))
        )
        yield Sample(
            (torch.randn(4) > 0, torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 1, dtype=torch.complex64))
        )
        yield Sample((torch.randn(4) > 0, torch.randn(4), torch.randn(2, 1)))
