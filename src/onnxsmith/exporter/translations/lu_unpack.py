"""`lu_unpack`: permutation and factors, each as a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _lu
from onnxsmith.exporter.translations._sizes import identity, smaller
from onnxsmith.exporter.translations.base import Sample, Translation


class LuUnpack(Translation):
    """The swaps in turn make the permutation; the triangles of the one matrix are the factors."""

    targets = ("aten::lu_unpack",)

    def decompose(self, factors: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
        if factors.is_complex():
            return NotImplemented
        rows = factors.shape[-2]
        count = smaller(factors)
        permuted, lower, upper = (factors.new_empty([0]) for _ in range(3))
        if unpack_pivots:
            order = _lu.permutation(pivots, rows)
            permuted = (torch.arange(rows, device=factors.device).unsqueeze(-1) == order.unsqueeze(-2)).to(
                factors.dtype
            )
        if unpack_data:
            ones = identity(rows, count, factors)
            lower = factors[..., :count].tril(-1) + ones
            upper = factors[..., :count, :].triu()
        return permuted, lower, upper

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (5, 3), (2, 3, 7), (0, 3, 3), (4, 0), (2, 9, 6)):
            yield Sample(tuple(torch.linalg.lu_factor(torch.randn(shape))))
        found = tuple(torch.linalg.lu_factor(torch.randn(5, 5, dtype=torch.float64)))
        yield Sample((*found, True, False))
        yield Sample((*found, False, True))
