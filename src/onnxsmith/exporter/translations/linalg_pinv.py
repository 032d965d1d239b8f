"""`linalg.pinv`: the pseudo-inverse of Moore and Penrose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _jacobi
from onnxsmith.exporter.translations._sizes import is_empty
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgPinv(Translation):
    """From the singular values, or of a symmetric matrix the eigenvalues, that are larger than both tolerances. When
    neither is given the relative one is the dtype's epsilon times the larger of rows and columns."""

    targets = ("aten::linalg_pinv.atol_rtol_tensor",)

    def decompose(self, matrix: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
        if matrix.is_complex():
            return NotImplemented
        rows, columns = matrix.shape[-2:]
        if is_empty(matrix):
            return matrix.new_zeros([*matrix.shape[:-2], columns, rows])
        larger: Any = torch.sym_max
        epsilon = torch.finfo(matrix.dtype).eps * larger(rows, columns)
        absolute = torch.zeros((), dtype=matrix.dtype) if atol is None else atol
        if rtol is not None:
            relative = rtol
        elif atol is None:
            relative = torch.full((), epsilon, dtype=matrix.dtype)
        else:
            relative = torch.where(absolute > 0, 0.0, epsilon)
        if hermitian:
            values, vectors = _jacobi.symmetric(matrix.tril() + matrix.tril(-1).mT)
            return (vectors * _reciprocal(values, values.abs(), absolute, relative)) @ vectors.mT
        if isinstance(rows, int) and isinstance(columns, int) and rows < columns:
            return self.decompose(matrix.mT, atol=atol, rtol=rtol).mT
        scaled, values, right = _jacobi.singular(matrix)
        inverse = _reciprocal(values, values, absolute, relative)
        return (right * inverse) @ (scaled * inverse).mT

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (5, 2), (2, 3, 6), (0, 3), (0, 2, 2)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.randn(5, 4, dtype=torch.float64),), around=flattened)
        yield Sample((torch.randn(2, 4, 4),), around=bounded)
        yield Sample((torch.randn(2, 4, 4),), {"hermitian": True}, around=symmetrical)
        yield Sample((torch.randn(3, 5, 2),), dynamic={0: {0: "batch"}})


def flattened(op: Any, matrix: torch.Tensor) -> Any:
    """The operator on a matrix of rank 2, whose other singular values are rounding."""
    flat = matrix[:, :2] @ (matrix[:2, :].tanh() + 2 * torch.eye(2, 4))
    return op(flat, rtol=torch.full((), 1e-6, dtype=matrix.dtype))


def bounded(op: Any, matrix: torch.Tensor) -> Any:
    """The operator with both bounds, an absolute one for each matrix of the batch."""
    absolute = torch.arange(2, dtype=matrix.dtype) / 4
    return op(matrix.tanh() + 3 * torch.eye(4), atol=absolute, rtol=torch.full((), 0.125))


def symmetrical(op: Any, matrix: torch.Tensor, **kwargs: Any) -> Any:
    """The operator on a well-conditioned symmetric matrix."""
    return op(matrix.tanh() + matrix.mT.tanh() + 9 * torch.eye(4).flip(-1), **kwargs)


def _reciprocal(values: torch.Tensor, sizes: torch.Tensor, absolute: Any, relative: Any) -> torch.Tensor:
    """1 / values where they are large enough, 0 elsewhere, as a row."""
    bound = torch.maximum(absolute.unsqueeze(-1), relative.unsqueeze(-1) * sizes.amax(-1, keepdim=True))
    kept = sizes > bound
    return torch.where(kept, 1 / torch.where(kept, values, 1), 0).unsqueeze(-2)
