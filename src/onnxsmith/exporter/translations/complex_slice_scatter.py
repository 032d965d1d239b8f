"""Writes into slices of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexSliceScatter(Translation):
    """Each number's parts stay together."""

    targets = ("aten::slice_scatter",)

    def decompose(self, self_: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        written = parts(src, self_.dtype)
        return torch.view_as_complex(torch.slice_scatter(parts(self_), written, before(dim), start, end, step))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(3, 2), 1, 1, 3))
        yield Sample((numbers(3, 4), numbers(3, 2), -1, -2, 9))
        yield Sample((numbers(3, 4), numbers(2, 4), 0, 0, 3, 2))
