"""`as_strided_scatter` and `diagonal_scatter`: a tensor with the elements of a view replaced."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class ScatterIntoView(Translation):
    """Takes the same view of the element indices, and scatters the source to these indices."""

    targets = ("aten::as_strided_scatter", "aten::diagonal_scatter")

    def decompose(self, x: Any, source: Any, *view: Any, **named: Any) -> Any:
        numbers = torch.arange(math.prod(x.shape))
        is_strided = "size" in named or (view and not isinstance(view[0], int))
        if is_strided:
            index = _strided(*view, **named)
        else:
            index = numbers.reshape(x.shape).diagonal(*view, **named).reshape(-1)
        return x.reshape(-1).scatter(0, index, source.reshape(-1)).reshape(x.shape)

    def samples(self) -> Iterator[Sample]:
        strided = "aten::as_strided_scatter"
        yield Sample((torch.randn(3, 4), torch.randn(2, 2), [2, 2], [4, 1], 1), {}, strided)
        yield Sample((torch.randn(6), torch.randn(2, 3), [2, 3], [1, 2]), {}, strided)
        yield Sample((torch.randn(6), torch.tensor(2.0), [], [], 3), {}, strided)
        diagonal = "aten::diagonal_scatter"
        yield Sample((torch.randn(3, 4), torch.randn(3)), {}, diagonal)
        yield Sample((torch.randn(2, 3, 4), torch.randn(3, 2), -1, -1, 0), {}, diagonal)
        yield Sample((torch.randint(0, 9, (3, 4)), torch.randint(0, 9, (2,)), 2), {}, diagonal)
        dynamic = {0: {0: "n"}, 1: {0: "n"}}
        yield Sample((torch.randn(3, 4, 4), torch.randn(3, 4), 0, 1, 2), {}, diagonal, dynamic)


def _strided(size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Numbers of the elements that a strided view has, flat."""
    index = torch.full((1,) * len(size), storage_offset or 0, dtype=torch.int64)
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        sizes = [1] * len(size)
        sizes[axis] = length
        index = index + (torch.arange(length) * step).reshape(sizes)
    return index.reshape(-1)
