"""LU factors with partial pivoting, in the form of LAPACK's `getrf`: one matrix for both, and the rows swapped."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from onnxsmith.exporter.translations import _triangular
from onnxsmith.exporter.translations._loops import Index, column, repeat, row
from onnxsmith.exporter.translations._sizes import Size, batch, smaller


def factor(matrix: torch.Tensor) -> Sequence[torch.Tensor]:
    """The factors, the pivots (int32, counted from 1) and `info`: the number, from 1, of the first pivot that is 0."""
    count = smaller(matrix)
    pivots = torch.zeros([*matrix.shape[:-2], count], dtype=torch.int32, device=matrix.device)
    info = torch.zeros(matrix.shape[:-2], dtype=torch.int32, device=matrix.device)
    return repeat(count, _eliminate, [matrix, pivots, info])


def _eliminate(index: Index, matrix: torch.Tensor, pivots: torch.Tensor, info: torch.Tensor) -> Sequence[torch.Tensor]:
    rows = torch.arange(matrix.shape[-2], device=matrix.device)
    columns = torch.arange(matrix.shape[-1], device=matrix.device)
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
    """The row that moves to each position when rows are swapped by the pivots."""
    order = torch.arange(size, device=pivots.device).expand([*pivots.shape[:-1], size])
    (order,) = repeat(pivots.shape[-1], _swap, [order], [pivots])
    return order


def _swap(index: Index, order: torch.Tensor, pivots: torch.Tensor) -> Sequence[torch.Tensor]:
    places = torch.arange(order.shape[-1], device=order.device)
    other = column(pivots.unsqueeze(-2), index).to(torch.int64) - 1
    here, there = column(order.unsqueeze(-2), index), order.gather(-1, other)
    return [torch.where(places == index, there, torch.where(places == other, here, order))]


def solve(factors: torch.Tensor, pivots: torch.Tensor, right: torch.Tensor, transposed: bool = False) -> torch.Tensor:
    """X of `A @ X = right` for the matrix of these factors, or of its transpose; batch dimensions broadcast."""
    right = right.expand([*batch(factors, right), *right.shape[-2:]])
    order = permutation(pivots, factors.shape[-1]).unsqueeze(-1).expand(right.shape)
    if not transposed:
        lower = _triangular.solve(factors, right.gather(-2, order), upper=False, unitriangular=True)
        return _triangular.solve(factors, lower, upper=True)
    upper = _triangular.solve(factors, right, upper=True, transposed=True)
    found = _triangular.solve(factors, upper, upper=False, unitriangular=True, transposed=True)
    zeros = torch.zeros(found.shape, dtype=found.dtype, device=found.device)
    return zeros.scatter(-2, order, found)
