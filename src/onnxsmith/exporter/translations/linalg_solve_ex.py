"""`linalg.solve`: systems of linear equations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _lu
from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.linalg_lu_solve import mixed


class LinalgSolveEx(Translation):
    """Gaussian elimination with partial pivoting, then substitution. Right-hand sides of one dimension, or with the
    shape of a batch of them, are vectors, as PyTorch has it."""

    targets = ("aten::_linalg_solve_ex",)

    def decompose(self, matrix: Any, right: Any, *, left: bool = True, check_errors: bool = False) -> Any:
        if matrix.is_complex():
            return NotImplemented
        is_vector = right.dim() == 1 or (matrix.dim() - 1 == right.dim() and right.shape == matrix.shape[:-1])
        if is_vector:
            right = right.unsqueeze(-1)
        factors, pivots, info = _lu.factor(matrix)
        found = _lu.solve(factors, pivots, right if left else right.mT, transposed=not left)
        found = found if left else found.mT
        return found.squeeze(-1) if is_vector else found, factors, pivots, info

    def samples(self) -> Iterator[Sample]:
        for size in (0, 2):
            yield Sample((torch.randn(2, size, size), torch.randn(size, 4)), around=solved)
            yield Sample((torch.randn(5, size, size), torch.randn(5, size)), around=solved)
        for size in (1, 6):
            yield Sample((torch.randn(size, size), torch.randn(3, 2, size)), {"left": False}, around=solved)
            yield Sample((torch.randn(size, size).double(), torch.randn(size).double()), around=solved)
        axes = {0: {0: "batch", 1: "n", 2: "n"}, 1: {0: "batch", 1: "n"}}
        yield Sample((torch.randn(2, 6, 6), torch.randn(2, 6, 3)), dynamic=axes, around=solved)


def solved(op: Any, matrix: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """What `op` finds for a well-conditioned matrix, without the factors that it found on the way."""
    found = op(mixed(matrix), *args, **kwargs)
    return found[0], found[-1]
