"""`linalg.lu_solve`: systems of equations whose matrix is given as its LU factors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _lu
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgLuSolve(Translation):
    """The right-hand sides' rows swapped as the matrix's were, then substitution with either factor."""

    targets = ("aten::linalg_lu_solve",)

    def decompose(self, factors: Any, pivots: Any, right: Any, *, left: bool = True, adjoint: bool = False) -> Any:
        if factors.is_complex():
            return NotImplemented
        if left:
            return _lu.solve(factors, pivots, right, transposed=adjoint)
        return _lu.solve(factors, pivots, right.mT, transposed=not adjoint).mT

    def samples(self) -> Iterator[Sample]:
        def factored(op: Any, matrix: torch.Tensor, right: torch.Tensor, **kwargs: Any) -> Any:
            factors, pivots, _ = torch.linalg.lu_factor_ex(mixed(matrix))
            return op(factors, pivots, right, **kwargs)

        for size, left, adjoint in ((3, True, False), (6, True, True), (6, False, False), (2, False, True)):
            right = torch.randn(size, 4) if left else torch.randn(4, size)
            yield Sample((torch.randn(2, size, size), right), {"left": left, "adjoint": adjoint}, around=factored)
        yield Sample((torch.randn(5, 5).double(), torch.randn(5, 0).double()), around=factored)
        yield Sample((torch.randn(0, 0), torch.randn(0, 3)), around=factored)
        axes = {0: {0: "batch", 1: "n", 2: "n"}, 1: {0: "batch", 1: "n"}}
        yield Sample((torch.randn(2, 6, 6), torch.randn(2, 6, 3)), dynamic=axes, around=factored)


def mixed(matrix: torch.Tensor) -> torch.Tensor:
    """A well-conditioned matrix whose largest elements are off its diagonal."""
    size = matrix.shape[-1]
    return matrix.tanh() / max(size, 1) + 2 * torch.eye(size, dtype=matrix.dtype).flip(-1)
