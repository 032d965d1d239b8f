"""`addmm` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, product
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexAddmm(Translation):
    """The product of the matrices by parts, and a sum."""

    targets = ("aten::addmm", "aten::baddbmm")

    def decompose(self, self_: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        found = product(torch.matmul, mat1, mat2)
        return self_ * beta + found * alpha

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2), numbers(3, 4), numbers(4, 2)))
        yield Sample((numbers(2), numbers(3, 4), numbers(4, 2)), {"alpha": 0.5})
