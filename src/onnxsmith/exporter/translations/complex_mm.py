"""Matrix products of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, product
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexMm(Translation):
    """By four products of parts."""

    targets = ("aten::mm",)

    def decompose(self, self_: Any, other: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return product(torch.matmul, self_, other)

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(4, 2)), dynamic={0: {0: "n"}})
