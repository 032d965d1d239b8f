"""`linalg.cholesky`: the triangular factor of symmetric positive definite matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._loops import Index, column, repeat
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgCholeskyEx(Translation):
    """Column by column, each taken out of what remains (the outer product form: G. Golub and C. Van Loan, Matrix
    Computations, 4.2). Only the triangle that PyTorch reads is read. A pivot that is not positive is reported as
    `info`, the number of its column counted from 1; what comes after it is no factor, with PyTorch as here."""

    targets = ("aten::linalg_cholesky_ex",)

    def decompose(self, matrix: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
        if matrix.is_complex():
            return NotImplemented
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
    """The operator on a well-conditioned positive definite matrix."""
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
