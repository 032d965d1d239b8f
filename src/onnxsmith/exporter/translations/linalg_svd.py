"""`linalg.svd`: singular values and vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _householder, _jacobi
from onnxsmith.exporter.translations._sizes import identity, is_empty, smaller, wider
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgSvd(Translation):
    """One-sided Jacobi gives V and the columns of U times their singular values; a QR factorisation of these is U, with
    what is missing where singular values are 0 or all columns are asked for. The sign of a pair of vectors is open, and
    PyTorch's follows from rounding; here the largest element of the shorter one is positive."""

    targets = ("aten::_linalg_svd",)

    def decompose(
        self, matrix: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
    ) -> Any:
        if matrix.is_complex():
            return NotImplemented
        rows, columns = matrix.shape[-2:]
        if isinstance(rows, int) and isinstance(columns, int) and rows < columns:
            right, values, left = self.decompose(matrix.mT, full_matrices, compute_uv)
            return (left.mT, values, right.mT) if compute_uv else (left, values, right)
        least = smaller(matrix)
        if is_empty(matrix):
            scaled, values = matrix, matrix.new_zeros([*matrix.shape[:-2], columns])
            right = identity(columns, columns, matrix).expand([*matrix.shape[:-2], columns, columns])
        else:
            scaled, values, right = _jacobi.singular(matrix)
        values = values[..., :least]
        if not compute_uv:
            return matrix.new_zeros([0]), values, matrix.new_zeros([0])
        left = _directions(scaled[..., :least], rows if full_matrices else least)
        return left, values, right[..., : columns if full_matrices else least].mT

    def samples(self) -> Iterator[Sample]:
        for full in (False, True):
            for shape in ((0, 3), (3, 0), (1, 1), (6, 3), (2, 4, 7)):
                yield Sample((torch.randn(shape), full), around=invariant)
        yield Sample((torch.randn(0, 2, 3),))
        yield Sample((torch.randn(5, 5, dtype=torch.float64),), around=invariant)
        yield Sample((torch.ones(4, 3), True), around=invariant)
        yield Sample((torch.randn(5, 4), False, False))
        yield Sample((torch.randn(3, 5, 4),), dynamic={0: {0: "batch"}}, around=invariant)
        yield Sample((torch.randn(7, 5),), dynamic={0: {0: "m", 1: "n"}}, around=invariant)


def invariant(op: Any, *args: Any) -> Any:
    """What does not depend on signs: the values, the product, and that vectors are orthonormal."""
    left, values, right = op(*args)
    least = values.shape[-1]
    product = (left[..., :least] * values.unsqueeze(-2)) @ right[..., :least, :]
    return values, product, left.mT @ left, right @ right.mT


def _directions(scaled: torch.Tensor, columns: Any) -> torch.Tensor:
    """Orthonormal columns along those given, which are orthogonal, and others where they are zero or lacking."""
    factored, scales = _householder.factor(scaled)
    found = _householder.orthogonal(factored, scales, columns)
    signs = torch.where(factored.diagonal(0, -2, -1) < 0, -1, 1).to(scaled.dtype)
    signs = wider(signs, -1, columns - signs.shape[-1], 1.0)
    return found * signs.unsqueeze(-2)
