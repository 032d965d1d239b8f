"""`linalg.lu_factor`: LU factors in one matrix, with pivots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _lu
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgLuFactorEx(Translation):
    """Gaussian elimination, the largest element of a column as pivot and the first of equal ones, as LAPACK's `getrf`.
    PyTorch factors without pivoting on GPUs only; such a call has no translation."""

    targets = ("aten::linalg_lu_factor_ex",)

    def decompose(self, matrix: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
        return tuple(_lu.factor(matrix)) if pivot and not matrix.is_complex() else NotImplemented

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (5, 3), (2, 3, 7), (0, 3, 3), (4, 0), (0, 0), (8, 6)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.randn(5, 5, dtype=torch.float64),))
        yield Sample((torch.randn(2, 6, 5),), dynamic={0: {0: "batch", 1: "m", 2: "n"}})
