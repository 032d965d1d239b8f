"""Writes at indices of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexIndexPut(Translation):
    """Each number's parts stay together: their axis comes after all that have an index."""

    targets = ("aten::index_put",)

    def decompose(self, self_: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        written = parts(values, self_.dtype)
        return torch.view_as_complex(torch.ops.aten.index_put.default(parts(self_), indices, written, accumulate))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [torch.tensor([2, 0])], numbers(2, 4)))
        yield Sample((numbers(3, 4), [torch.tensor([2, 0]), torch.tensor([1, 1])], torch.tensor(1j)))
