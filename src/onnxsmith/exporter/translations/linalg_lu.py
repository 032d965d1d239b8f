"""`linalg.lu`: permutation and triangular factors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgLu(Translation):
    """`lu_unpack` of what `linalg_lu_factor_ex` finds."""

    targets = ("aten::linalg_lu",)

    def decompose(self, matrix: Any, *, pivot: bool = True) -> Any:
        if not pivot or matrix.is_complex():
            return NotImplemented
        factors, pivots, _ = torch.linalg.lu_factor_ex(matrix)
        return torch.lu_unpack(factors, pivots)

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (5, 3), (2, 3, 7), (0, 3, 3), (4, 0)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.randn(2, 6, 6, dtype=torch.float64),), dynamic={0: {0: "batch"}})
