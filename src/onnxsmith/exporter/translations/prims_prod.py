"""`prims.prod`: the product over several axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class PrimsProd(Translation):
    """One axis after the other, each by the operator that has one axis."""

    targets = ("prims::prod",)

    def decompose(self, inp: Any, dims: Sequence[int] | None, *, output_dtype: torch.dtype | None = None) -> Any:
        found = inp if output_dtype is None else inp.to(output_dtype)
        for dim in sorted(range(inp.dim()) if dims is None else dims, reverse=True):
            found = torch.ops.aten.prod.dim_int(found, dim, dtype=found.dtype)
        return found

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3, 4), [0, 2]))
        yield Sample((torch.randn(2, 3), [1]), dynamic={0: {0: "n"}})
        yield Sample((torch.randint(-3, 3, (2, 3)), [0, 1]))
        yield Sample((torch.randn(2, 0), [1]))
