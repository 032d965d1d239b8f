"""Writes into one place of an axis of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexSelectScatter(Translation):
    """Each number's parts stay together."""

    targets = ("aten::select_scatter",)

    def decompose(self, self_: Any, src: Any, dim: int, index: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(torch.select_scatter(parts(self_), parts(src, self_.dtype), before(dim), index))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(3), -1, 2))
        yield Sample((numbers(3, 4), numbers(4), 0, -1))
