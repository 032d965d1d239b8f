"""`linalg.vector_norm` of a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgVectorNorm(Translation):
    """The absolute value of a number; for order 0, whether it is not zero. Leaves other tensors to PyTorch's
    exporter."""

    targets = ("aten::linalg_vector_norm",)

    def decompose(self, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: A002
        if x.dim() or x.is_complex():
            return NotImplemented
        x = x if dtype is None else x.to(dtype)
        return (x != 0).to(x.dtype) if ord == 0 else x.abs()

    def samples(self) -> Iterator[Sample]:
        for order in (2, 1, 0, float("inf"), -2.5):
            yield Sample((torch.tensor(-2.5), order, [0]))
        yield Sample((torch.tensor(0.0), 0, [-1], True))
        yield Sample((torch.tensor(-3.5), 2, [0]), {"dtype": torch.float64})
        yield Sample((torch.randn(3, 4), 2, [1]), dynamic={0: {0: "n"}})
