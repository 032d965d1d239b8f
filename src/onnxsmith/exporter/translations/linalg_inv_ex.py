"""`linalg.inv`: the inverse of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _lu
from onnxsmith.exporter.translations._sizes import identity
from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.linalg_solve_ex import solved


class LinalgInvEx(Translation):
    """The systems of equations whose right-hand sides are the identity."""

    targets = ("aten::linalg_inv_ex",)

    def decompose(self, matrix: Any, *, check_errors: bool = False) -> Any:
        if matrix.is_complex():
            return NotImplemented
        factors, pivots, info = _lu.factor(matrix)
        ones = identity(matrix.shape[-1], matrix.shape[-1], matrix)
        return _lu.solve(factors, pivots, ones), info

    def samples(self) -> Iterator[Sample]:
        for size in (0, 1, 3, 5):
            yield Sample((torch.randn(2, size, size),), around=solved)
        yield Sample((torch.randn(2, 2).double(),), around=solved)
        yield Sample((torch.randn(3, 3, 3),), dynamic={0: {0: "batch"}}, around=solved)
        yield Sample((torch.randn(5, 5),), dynamic={0: {0: "n", 1: "n"}}, around=solved)
