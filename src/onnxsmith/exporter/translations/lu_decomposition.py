"""LU factors with partial pivoting in the form of LAPACK's `getrf`: both factors in one matrix, and the swapped rows.

Systems of equations, inverses and determinants follow from the factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import RealOperator
from onnxsmith.exporter.translations._loops import Index, column, repeat, row
from onnxsmith.exporter.translations._tensors import Size, batch, identity, smaller
from onnxsmith.exporter.translations.base import Sample
from onnxsmith.exporter.translations.cholesky_and_triangular import solve_triangular


def lu_factor(matrix: torch.Tensor) -> Sequence[torch.Tensor]:
    """Returns the factors, the pivots (int32, counted from 1) and `info`: the number, from 1, of the first pivot that
    is 0."""
    count = smaller(matrix)
    pivots = torch.zeros([*matrix.shape[:-2], count], dtype=torch.int32, device=matrix.device)
    info = torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)
    return repeat(count, _eliminate, [matrix, pivots, info])


def _eliminate(index: Index, matrix: torch.Tensor, pivots: torch.Tensor, info: torch.Tensor) -> Sequence[torch.Tensor]:
    rows = torch.arange(matrix.shape[-2], device=matrix.device)
    columns = torch.arange(matrix.shape[-1], device=matrix.device)
    # -1 is below every magnitude, so rows above the diagonal are never chosen
    chosen = torch.where(rows >= index, column(matrix, index).abs(), -1).argmax(-1, keepdim=True)
    above = row(matrix, index).unsqueeze(-2)
    wide = chosen.unsqueeze(-1).expand([*matrix.shape[:-2], 1, matrix.shape[-1]])
    upper = matrix.gather(-2, wide)
    matrix = torch.where((rows == chosen).unsqueeze(-1), above, matrix)
    matrix = torch.where((rows == index).unsqueeze(-1), upper, matrix)
    pivot = column(upper, index)
    below = (rows > index).unsqueeze(-1)
    lower = column(matrix, index) / torch.where(pivot == 0, 1, pivot)
    rest = torch.where(columns == index, lower.unsqueeze(-1), matrix - lower.unsqueeze(-1) * upper)
    matrix = torch.where(below & (columns >= index), rest, matrix)
    places = torch.arange(pivots.shape[-1], device=matrix.device)
    pivots = torch.where(places == index, chosen + 1, pivots).to(torch.int32)
    failed = (pivot == 0).squeeze(-1) & (info == 0)
    return matrix, pivots, torch.where(failed, index + 1, info).to(torch.int32)


def permutation(pivots: torch.Tensor, size: Size) -> torch.Tensor:
    """Returns the row that moves to each position when rows are swapped by the pivots."""
    order = torch.arange(size, device=pivots.device).expand([*pivots.shape[:-1], size])
    (order,) = repeat(pivots.shape[-1], _swap, [order], [pivots])
    return order


def _swap(index: Index, order: torch.Tensor, pivots: torch.Tensor) -> Sequence[torch.Tensor]:
    places = torch.arange(order.shape[-1], device=order.device)
    other = column(pivots.unsqueeze(-2), index).to(torch.int64) - 1
    here, there = column(order.unsqueeze(-2), index), order.gather(-1, other)
    return [torch.where(places == index, there, torch.where(places == other, here, order))]


def lu_solve(
    factors: torch.Tensor, pivots: torch.Tensor, right: torch.Tensor, transposed: bool = False
) -> torch.Tensor:
    """Returns X with `A @ X = right`, for the matrix A of these factors or its transpose; batch dimensions
    broadcast."""
    right = right.expand([*batch(factors, right), *right.shape[-2:]])
    order = permutation(pivots, factors.shape[-1]).unsqueeze(-1).expand(right.shape)
    if not transposed:
        lower = solve_triangular(factors, right.gather(-2, order), upper=False, unitriangular=True)
        return solve_triangular(factors, lower, upper=True)
    upper = solve_triangular(factors, right, upper=True, transposed=True)
    found = solve_triangular(factors, upper, upper=False, unitriangular=True, transposed=True)
    zeros = torch.zeros(found.shape, dtype=found.dtype, device=found.device)
    # undoes the row swaps, which come last for the transpose
    return zeros.scatter(-2, order, found)


class LinalgLuFactorEx(RealOperator, targets="aten::linalg_lu_factor_ex"):
    """Computes `linalg.lu_factor`, LU factors in one matrix with pivots, by Gaussian elimination.

    As in LAPACK's `getrf`, the pivot is the largest element of a column, the first of equal ones. A call without
    pivoting, which PyTorch computes on GPUs only, has no translation.
    """

    def value(self, matrix: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
        return tuple(lu_factor(matrix)) if pivot else NotImplemented

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (5, 3), (2, 3, 7), (0, 3, 3), (4, 0), (0, 0), (8, 6)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.randn(5, 5, dtype=torch.float64),))
        yield Sample((torch.randn(2, 6, 5),), dynamic={0: {0: "batch", 1: "m", 2: "n"}})


class LinalgLu(RealOperator, targets="aten::linalg_lu"):
    """Computes `linalg.lu`, permutation and triangular factors, by `lu_unpack` of the result of
    `linalg.lu_factor_ex`."""

    def value(self, matrix: Any, *, pivot: bool = True) -> Any:
        if not pivot:
            return NotImplemented
        factors, pivots, _ = torch.linalg.lu_factor_ex(matrix)
        return torch.lu_unpack(factors, pivots)

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (5, 3), (2, 3, 7), (0, 3, 3), (4, 0)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.randn(2, 6, 6, dtype=torch.float64),), dynamic={0: {0: "batch"}})


class LuUnpack(RealOperator, targets="aten::lu_unpack"):
    """Computes `lu_unpack`: the permutation from the swaps, and the factors from the triangles of the one matrix."""

    def value(self, factors: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
        rows = factors.shape[-2]
        count = smaller(factors)
        permuted, lower, upper = (factors.new_empty([0]) for _ in range(3))
        if unpack_pivots:
            order = permutation(pivots, rows)
            places = torch.arange(rows, device=factors.device).unsqueeze(-1)
            permuted = (places == order.unsqueeze(-2)).to(factors.dtype)
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


class LinalgLuSolve(RealOperator, targets="aten::linalg_lu_solve"):
    """Computes `linalg.lu_solve`, systems of equations given LU factors: swaps rows, then substitutes with each
    factor."""

    def value(self, factors: Any, pivots: Any, right: Any, *, left: bool = True, adjoint: bool = False) -> Any:
        if left:
            return lu_solve(factors, pivots, right, transposed=adjoint)
        return lu_solve(factors, pivots, right.mT, transposed=not adjoint).mT

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
    """Returns a well-conditioned matrix whose largest elements are off its diagonal."""
    size = matrix.shape[-1]
    return matrix.tanh() / max(size, 1) + 2 * torch.eye(size, dtype=matrix.dtype).flip(-1)


class LinalgSolveEx(RealOperator, targets="aten::_linalg_solve_ex"):
    """Computes `linalg.solve`, systems of linear equations, by Gaussian elimination with partial pivoting and
    substitution.

    As in PyTorch, right-hand sides with one dimension, or with the shape of a batch of vectors, are vectors.
    """

    def value(self, matrix: Any, right: Any, *, left: bool = True, check_errors: bool = False) -> Any:
        is_vector = right.dim() == 1 or (matrix.dim() - 1 == right.dim() and right.shape == matrix.shape[:-1])
        if is_vector:
            right = right.unsqueeze(-1)
        factors, pivots, info = lu_factor(matrix)
        found = lu_solve(factors, pivots, right if left else right.mT, transposed=not left)
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
    """Returns the solution for a well-conditioned matrix and `info`, without the factors."""
    found = op(mixed(matrix), *args, **kwargs)
    return found[0], found[-1]


class LinalgInvEx(RealOperator, targets="aten::linalg_inv_ex"):
    """Computes `linalg.inv`, inverses of matrices, by solving systems of equations with the identity on the right."""

    def value(self, matrix: Any, *, check_errors: bool = False) -> Any:
        factors, pivots, info = lu_factor(matrix)
        ones = identity(matrix.shape[-1], matrix.shape[-1], matrix)
        return lu_solve(factors, pivots, ones), info

    def samples(self) -> Iterator[Sample]:
        for size in (0, 1, 3, 5):
            yield Sample((torch.randn(2, size, size),), around=solved)
        yield Sample((torch.randn(2, 2).double(),), around=solved)
        yield Sample((torch.randn(3, 3, 3),), dynamic={0: {0: "batch"}}, around=solved)
        yield Sample((torch.randn(5, 5),), dynamic={0: {0: "n", 1: "n"}}, around=solved)


class LinalgSlogdet(RealOperator, targets="aten::_linalg_slogdet"):
    """Computes `linalg.slogdet`, sign and logarithm of a determinant, as the sum of the logarithms of the pivots.

    The sum stays finite where the product of the pivots overflows or underflows. Each swap of two rows changes the
    sign. The determinant of a matrix without elements is 1.
    """

    def value(self, matrix: Any) -> Any:
        factors, pivots, _ = lu_factor(matrix)
        diagonal = factors.diagonal(0, -2, -1)
        places = torch.arange(1, matrix.shape[-1] + 1, device=matrix.device)
        swaps = (pivots != places).sum(-1)
        sign = diagonal.sign().prod(-1) * (1 - 2 * (swaps % 2)).to(matrix.dtype)
        return sign, diagonal.abs().log().sum(-1), factors, pivots

    def samples(self) -> Iterator[Sample]:
        def around(op: Any, matrix: torch.Tensor) -> Any:
            return op(matrix)[:2]

        for shape in ((0, 0), (1, 1), (2, 3, 3), (4, 6, 6)):
            yield Sample((torch.randn(shape),), around=around)
        yield Sample((torch.ones(3, 3, dtype=torch.float64),), around=around)
        yield Sample((torch.randn(5, 6, 6),), dynamic={0: {0: "batch"}}, around=around)
