"""`rsub`: a number minus a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Rsub(Translation):
    """Computes in the promoted dtype: for `1.0 - x` with integers PyTorch's exporter finds no overload."""

    targets = ("aten::rsub.Scalar",)

    def decompose(self, x: torch.Tensor, other: Any, alpha: Any = 1) -> Any:
        dtype = torch.result_type(x, other)
        return torch.sub(torch.full((), other, dtype=dtype), x.to(dtype), alpha=alpha)

    def samples(self) -> Iterator[Sample]:
        whole = torch.tensor([[-3, 0, 5], [1, 2, 4]])
        yield Sample((whole, 1.0))
        yield Sample((whole, 0.5, 2))
        yield Sample((whole.to(torch.uint8), 1.5))
        yield Sample((torch.tensor(3), 1.5))
        yield Sample((whole, 2, 3))
        yield Sample((torch.randn(2, 3), 1))
        yield Sample((whole, 1.0), {}, "", {0: {0: "n", 1: "m"}})
