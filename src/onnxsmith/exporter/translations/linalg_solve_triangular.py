"""`linalg.solve_triangular`: systems of equations with a triangular matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _triangular
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgSolveTriangular(Translation):
    """Substitution, forward or back. `X @ A = B` is solved as its transpose."""

    targets = ("aten::linalg_solve_triangular",)

    def decompose(self, matrix: Any, right: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
        if matrix.is_complex():
            return NotImplemented
        if left:
            return _triangular.solve(matrix, right, upper=upper, unitriangular=unitriangular)
        return _triangular.solve(matrix, right.mT, upper=upper, unitriangular=unitriangular, transposed=True).mT

    def samples(self) -> Iterator[Sample]:
        for upper in (False, True):
            yield Sample((torch.randn(2, 6, 6), torch.randn(6, 3)), {"upper": upper}, around=dominant)
            yield Sample((torch.randn(3, 3), torch.randn(2, 4, 3)), {"upper": upper, "left": False}, around=dominant)
            kwargs = {"upper": upper, "unitriangular": True, "left": upper}
            yield Sample((torch.randn(5, 5).double(), torch.randn(5, 5).double()), kwargs, around=dominant)
        yield Sample((torch.randn(0, 0), torch.randn(0, 2)), {"upper": True}, around=dominant)
        yield Sample((torch.randn(6, 6), torch.randn(6, 0)), {"upper": True}, around=dominant)
        axes = {0: {0: "batch", 1: "n", 2: "n"}, 1: {0: "batch", 1: "n", 2: "k"}}
        yield Sample((torch.randn(2, 6, 6), torch.randn(2, 6, 3)), {"upper": True}, dynamic=axes, around=dominant)


def dominant(op: Any, matrix: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """The operator on a matrix with a dominant diagonal, which is well conditioned with either triangle."""
    size = max(matrix.shape[-1], 1)
    return op(matrix.tanh() / size + 2 * torch.eye(matrix.shape[-1], dtype=matrix.dtype), *args, **kwargs)
