"""`prod` of a number along an axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Prod(Translation):
    """A number is its own product; integers and bools give int64. Leaves other tensors to PyTorch's exporter."""

    targets = ("aten::prod.dim_int",)

    def decompose(self, x: Any, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Any:
        if x.dim():
            return NotImplemented
        exact = x.dtype.is_floating_point or x.dtype.is_complex
        return x.to(dtype or (x.dtype if exact else torch.int64)).clone()

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor(2.5), 0))
        yield Sample((torch.tensor(3, dtype=torch.int32), -1, True))
        yield Sample((torch.tensor(3), 0), {"dtype": torch.float32})
        yield Sample((torch.randn(3, 4), 1), dynamic={0: {0: "n"}})
