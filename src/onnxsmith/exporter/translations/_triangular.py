"""Solves triangular systems by substitution."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from onnxsmith.exporter.translations._loops import Index, column, repeat, row
from onnxsmith.exporter.translations._sizes import batch


def solve(
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
