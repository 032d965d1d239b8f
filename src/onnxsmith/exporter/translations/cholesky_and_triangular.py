"""Cholesky factors, and systems of equations with a triangular matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch

from onnxsmith.base.library_versions import Lifetime
from onnxsmith.exporter.translations._complex import RealOperator
from onnxsmith.exporter.translations._loops import Index, column, repeat, row
from onnxsmith.exporter.translations._tensors import batch
from onnxsmith.exporter.translations.base import Sample


class LinalgCholeskyEx(RealOperator, targets="aten::linalg_cholesky_ex"):
    """Computes `linalg.cholesky`, the triangular factor of symmetric positive definite matrices.

    Works column by column and subtracts each from the remaining matrix (the outer product form: G. Golub and C. Van
    Loan, Matrix Computations, 4.2). Reads the same triangle as PyTorch. If a pivot is not positive, `info` is the
    number of its column counted from 1; the later columns are then meaningless, as in PyTorch.
    """

    def value(self, matrix: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
        lower = matrix.mT if upper else matrix
        zeros = torch.zeros(matrix.shape, dtype=matrix.dtype, device=matrix.device)
        info = torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)
        _, factor, info = repeat(matrix.shape[-1], _column, [lower, zeros, info])
        return factor.mT if upper else factor, info

    def samples(self) -> Iterator[Sample]:
        for size in (0, 1, 3, 6):
            yield Sample((torch.randn(2, size, size),), around=definite)
        yield Sample((torch.randn(7, 7, dtype=torch.float64),), {"upper": True}, around=definite)
        yield Sample((torch.randn(0, 5, 5),), around=definite)
        yield Sample((torch.randn(2, 3, 5, 5),), dynamic={0: {0: "batch"}}, around=definite)
        yield Sample((torch.randn(6, 6),), dynamic={0: {0: "n", 1: "n"}}, around=definite)


def definite(op: Any, matrix: torch.Tensor, **kwargs: Any) -> Any:
    """Calls the operator on a well-conditioned positive definite matrix."""
    size = matrix.shape[-1]
    return op(matrix @ matrix.mT + size * torch.eye(size, dtype=matrix.dtype), **kwargs)


def _column(index: Index, rest: torch.Tensor, factor: torch.Tensor, info: torch.Tensor) -> Sequence[torch.Tensor]:
    rows = torch.arange(rest.shape[-1], device=rest.device)
    values = column(rest, index)
    pivot = column(values.unsqueeze(-2), index)
    failed = ~(pivot > 0).squeeze(-1) & (info == 0)
    values = torch.where(rows >= index, values / pivot.sqrt(), 0)
    factor = torch.where(rows == index, values.unsqueeze(-1), factor)
    rest = rest - values.unsqueeze(-1) * values.unsqueeze(-2)
    return rest, factor, torch.where(failed, index + 1, info).to(torch.int32)


class Cholesky(RealOperator, targets="aten::cholesky"):
    """Computes `cholesky`, the older name of `linalg.cholesky` that torch 2.14 removed, by `linalg.cholesky_ex`."""

    lifetimes: ClassVar = {"aten::cholesky": Lifetime(removed="2.14")}

    def value(self, matrix: Any, upper: bool = False) -> Any:
        factor, _ = torch.linalg.cholesky_ex(matrix, upper=upper)
        return factor

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 5, 5),), around=definite)
        yield Sample((torch.randn(3, 3, dtype=torch.float64),), {"upper": True}, around=definite)


def solve_triangular(
    matrix: torch.Tensor, right: torch.Tensor, *, upper: bool, unitriangular: bool = False, transposed: bool = False
) -> torch.Tensor:
    """Returns X with `matrix @ X = right`; batch dimensions broadcast. Reads only one triangle of `matrix`, without its
    diagonal if `unitriangular` (the diagonal is ones). `transposed` solves with the transpose of the triangle."""
    solved = right.expand([*batch(matrix, right), *right.shape[-2:]])
    if transposed:
        matrix, upper = matrix.mT, not upper
    (solved,) = repeat(matrix.shape[-1], _substitution(upper, unitriangular), [solved], [matrix])
    return solved


def _substitution(upper: bool, unitriangular: bool) -> Callable[..., Sequence[torch.Tensor]]:
    """Returns the loop body of the column-oriented form. Each round computes one unknown and subtracts it from the
    remaining equations."""

    def body(index: Index, rest: torch.Tensor, matrix: torch.Tensor) -> Sequence[torch.Tensor]:
        rows = torch.arange(matrix.shape[-1], device=matrix.device)
        at = matrix.shape[-1] - 1 - index if upper else index
        coefficients = column(matrix, at).unsqueeze(-1)
        found = row(rest, at).unsqueeze(-2)
        if not unitriangular:
            found = found / row(coefficients, at).unsqueeze(-2)
        left = (rows < at if upper else rows > at).unsqueeze(-1)
        rest = torch.where(left, rest - coefficients * found, rest)
        return [torch.where((rows == at).unsqueeze(-1), found, rest)]

    return body


class LinalgSolveTriangular(RealOperator, targets="aten::linalg_solve_triangular"):
    """Computes `linalg.solve_triangular`, systems of equations with a triangular matrix, by substitution.

    `X @ A = B` is solved as its transpose.
    """

    def value(self, matrix: Any, right: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
        if left:
            return solve_triangular(matrix, right, upper=upper, unitriangular=unitriangular)
        return solve_triangular(matrix, right.mT, upper=upper, unitriangular=unitriangular, transposed=True).mT

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
    """Calls the operator on a matrix with a dominant diagonal. Both of its triangles are well conditioned."""
    size = max(matrix.shape[-1], 1)
    return op(matrix.tanh() / size + 2 * torch.eye(matrix.shape[-1], dtype=matrix.dtype), *args, **kwargs)


class TriangularSolve(RealOperator, targets="aten::triangular_solve"):
    """Computes `triangular_solve`, the older name of `linalg.solve_triangular`, by substitution.

    The second result is the matrix, repeated for every right-hand side.
    """

    def value(
        self, right: Any, matrix: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> Any:
        solved = solve_triangular(matrix, right, upper=upper, unitriangular=unitriangular, transposed=transpose)
        return solved, matrix.expand([*batch(matrix, right), *matrix.shape[-2:]]).clone()

    def samples(self) -> Iterator[Sample]:
        def around(op: Any, right: torch.Tensor, matrix: torch.Tensor, **kwargs: Any) -> Any:
            return dominant(lambda made: op(right, made, **kwargs), matrix)

        for upper, transpose in ((False, False), (True, False), (False, True), (True, True)):
            kwargs = {"upper": upper, "transpose": transpose, "unitriangular": upper and transpose}
            yield Sample((torch.randn(6, 3), torch.randn(2, 6, 6)), kwargs, around=around)
        yield Sample((torch.randn(3, 1).double(), torch.randn(3, 3).double()), around=around)
