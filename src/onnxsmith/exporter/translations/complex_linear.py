"""`linear` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, product
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexLinear(Translation):
    """By four products of parts."""

    targets = ("aten::linear",)

    def decompose(self, self_: Any, weight: Any, bias: Any = None) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        found = product(torch.nn.functional.linear, self_, weight)
        return found if bias is None else found + bias

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(2, 4), numbers(2)), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), numbers(2, 4)))
