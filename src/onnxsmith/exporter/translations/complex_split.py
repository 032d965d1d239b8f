"""`split` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexSplit(Translation):
    """Each number's parts stay together."""

    targets = ("aten::split.Tensor",)

    def decompose(self, self_: Any, split_size: Any, dim: int = 0) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        found: Any = torch.split
        return [torch.view_as_complex(one) for one in found(parts(self_), split_size, before(dim))]

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 2))
        yield Sample((numbers(3, 4), 3, -1))
