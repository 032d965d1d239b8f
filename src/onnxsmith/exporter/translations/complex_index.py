"""Indices into complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexIndex(Translation):
    """Each number's parts stay together: their axis comes after all that have an index."""

    targets = ("aten::index.Tensor",)

    def decompose(self, self_: Any, indices: Sequence[Any]) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(torch.ops.aten.index.Tensor(parts(self_), indices).contiguous())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [torch.tensor([2, 0])]), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), [None, torch.tensor([1, 1])]))
        yield Sample((numbers(3, 4), [torch.tensor([0, 1]), torch.tensor([1, 3])]))
