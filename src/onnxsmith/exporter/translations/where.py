"""`where` of dtypes that PyTorch's exporter or onnxruntime does not have it for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Where(Translation):
    """Complex numbers: both parts by one condition. Booleans: `(condition and self) or (not condition and other)`.
    16-bit integers: chosen as 32-bit ones. onnxruntime has no kernel for these two."""

    targets = ("aten::where.self",)

    def decompose(self, condition: Any, self_: Any, other: Any) -> Any:
        if self_.dtype != other.dtype:
            return NotImplemented
        if self_.dtype.is_complex:
            parts = torch.view_as_real(self_), torch.view_as_real(other)
            return torch.view_as_complex(torch.where(condition.unsqueeze(-1), *parts))
        if self_.dtype == torch.bool:
            return (condition & self_) | (~condition & other)
        if self_.dtype == torch.int16:
            wide = torch.where(condition, self_.to(torch.int32), other.to(torch.int32))
            return wide.to(torch.int16)
        return NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample(
            (torch.randn(3, 4) > 0, torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4, dtype=torch.complex64))
        )
        yield Sample(
            (torch.randn(4) > 0, torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 1, dtype=torch.complex64))
        )
        yield Sample((torch.randn(4) > 0, torch.randn(4), torch.randn(2, 1)))
        yield Sample(
            (torch.randn(4) > 0, torch.randn(3, 4) > 0, torch.randn(3, 1) > 0), dynamic={1: {0: "n"}, 2: {0: "n"}}
        )
        yield Sample((torch.randn(4) > 0, torch.tensor(True), torch.tensor(False)))
        yield Sample((torch.randn(4) > 0, torch.arange(4, dtype=torch.int16), torch.tensor(-7, dtype=torch.int16)))
