"""`linalg.eigh`: eigenvalues and eigenvectors of symmetric matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _jacobi
from onnxsmith.exporter.translations._sizes import is_empty
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgEigh(Translation):
    """Jacobi's method on the triangle that is asked for. The sign of an eigenvector is open, and PyTorch's follows from
    rounding; here the largest element of each is positive."""

    targets = ("aten::_linalg_eigh",)

    def decompose(self, matrix: Any, UPLO: str = "L", compute_v: bool = True) -> Any:  # noqa: N803 — torch's name
        if matrix.is_complex():
            return NotImplemented
        if UPLO.upper() == "U":
            matrix = matrix.mT
        if is_empty(matrix):
            return matrix.new_zeros(matrix.shape[:-1]), matrix.new_zeros(matrix.shape if compute_v else [0])
        values, vectors = _jacobi.symmetric(matrix.tril() + matrix.tril(-1).mT)
        return values, vectors if compute_v else matrix.new_zeros([0])

    def samples(self) -> Iterator[Sample]:
        def around(op: Any, matrix: torch.Tensor, *args: Any) -> Any:
            values, vectors = op(matrix, *args)
            return values, vectors.abs() if vectors.dim() < 2 else (vectors * values.exp().unsqueeze(-2)) @ vectors.mT

        for shape in ((0, 0), (1, 1), (2, 2, 2), (3, 3), (3, 6, 6), (0, 3, 3)):
            yield Sample((torch.randn(shape),), around=around)
        yield Sample((torch.randn(5, 5, dtype=torch.float64), "U"), around=around)
        yield Sample((torch.randn(4, 4), "L", False), around=around)
        yield Sample((torch.ones(4, 4),), around=around)
        yield Sample((torch.randn(2, 5, 5),), dynamic={0: {0: "batch", 1: "n", 2: "n"}}, around=around)
