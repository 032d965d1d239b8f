"""`unsqueeze` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexUnsqueeze(Translation):
    """The new axis stands before that of the parts."""

    targets = ("aten::unsqueeze",)

    def decompose(self, self_: Any, dim: int) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        parts = torch.view_as_real(self_.resolve_conj())
        return torch.view_as_complex(parts.unsqueeze(dim if dim >= 0 else dim - 1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 3), -1))
        yield Sample((numbers(2, 3), 0))
        yield Sample((numbers(2, 3), -2), dynamic={0: {0: "n"}})
