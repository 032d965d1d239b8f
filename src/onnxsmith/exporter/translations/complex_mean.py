"""Means of complex tensors: a trace divides a complex sum by a plain number, which fixes the axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexMean(Translation):
    """The sum, both parts of which are divided."""

    targets = ()
    functions = (torch.mean, torch.Tensor.mean)

    def decompose(self, self_: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Any:
        if not self_.dtype.is_complex or dtype is not None or others:
            return NotImplemented
        axes = list(range(self_.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        count = math.prod(self_.shape[axis] for axis in axes or range(self_.dim()))
        return torch.view_as_complex(parts(self_.sum(axes, keepdim=keepdim)) / count)

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 0), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4),))
        yield Sample((numbers(3, 4), [0, -1], True))
        yield Sample((torch.randn(3, 4), 1))
