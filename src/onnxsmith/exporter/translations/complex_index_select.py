"""`index_select` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexIndexSelect(Translation):
    """Each number's parts stay together."""

    targets = ("aten::index_select",)

    def decompose(self, self_: Any, dim: int, index: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(self_).index_select(before(dim), index))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 0, torch.tensor([2, 0])), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), -1, torch.tensor([1])))
