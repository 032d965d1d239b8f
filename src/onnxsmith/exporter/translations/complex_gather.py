"""`gather` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexGather(Translation):
    """Each number's parts stay together."""

    targets = ("aten::gather",)

    def decompose(self, self_: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
        del sparse_grad
        if not self_.dtype.is_complex:
            return NotImplemented
        places = index.unsqueeze(-1).expand(*index.shape, 2)
        return torch.view_as_complex(parts(self_).gather(before(dim), places))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 1, torch.tensor([[0, 3], [1, 1]])))
        yield Sample((numbers(3, 4), -1, torch.tensor([[0, 3], [1, 1]])))
