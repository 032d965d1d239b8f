"""`sum` with a result of 8 or 16 bits, which ReduceSum does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation

_NARROW = (torch.int8, torch.int16, torch.uint8)


class Sum(Translation):
    """Adds 64-bit integers and keeps the low bits, as integers of a narrow dtype wrap around. Other dtypes are left to
    PyTorch's exporter."""

    targets = ("aten::sum.dim_IntList", "aten::sum.default")

    def decompose(
        self,
        x: torch.Tensor,
        dim: list[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Any:
        if dtype not in _NARROW:
            return NotImplemented
        return x.to(torch.int64).sum(dim, keepdim).to(dtype)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[100, -3, 90], [7, 120, 121]])
        for dtype in _NARROW:
            yield Sample((x, [1]), {"dtype": dtype}, "aten::sum.dim_IntList")
        yield Sample((x > 8, [0, 1], True), {"dtype": torch.int16}, "aten::sum.dim_IntList")
        yield Sample((x, [-1]), {}, "aten::sum.dim_IntList")
        yield Sample((x,), {"dtype": torch.int8}, "aten::sum.default")
        yield Sample((x.to(torch.int16), [1]), {"dtype": torch.int16}, "aten::sum.dim_IntList", {0: {0: "n", 1: "m"}})
