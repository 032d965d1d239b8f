"""`select` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexSelect(Translation):
    """One place of an axis of the parts."""

    targets = ("aten::select.int",)

    def decompose(self, self_: Any, dim: int, index: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        parts = torch.view_as_real(self_.resolve_conj())
        return torch.view_as_complex(parts.select(dim if dim >= 0 else dim - 1, index))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 3), -1, 0))
        yield Sample((numbers(2, 3), 0, -1))
        yield Sample((numbers(2, 3), -2, 1), dynamic={0: {1: "n"}})
