"""`triangular_solve`: the older name of `linalg.solve_triangular`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _triangular
from onnxsmith.exporter.translations._sizes import batch
from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.linalg_solve_triangular import dominant


class TriangularSolve(Translation):
    """Substitution, and the matrix itself for every right-hand side."""

    targets = ("aten::triangular_solve",)

    def decompose(
        self, right: Any, matrix: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> Any:
        if matrix.is_complex():
            return NotImplemented
        solved = _triangular.solve(matrix, right, upper=upper, unitriangular=unitriangular, transposed=transpose)
        return solved, matrix.expand([*batch(matrix, right), *matrix.shape[-2:]]).clone()

    def samples(self) -> Iterator[Sample]:
        def around(op: Any, right: torch.Tensor, matrix: torch.Tensor, **kwargs: Any) -> Any:
            return dominant(lambda made: op(right, made, **kwargs), matrix)

        for upper, transpose in ((False, False), (True, False), (False, True), (True, True)):
            kwargs = {"upper": upper, "transpose": transpose, "unitriangular": upper and transpose}
            yield Sample((torch.randn(6, 3), torch.randn(2, 6, 6)), kwargs, around=around)
        yield Sample((torch.randn(3, 1).double(), torch.randn(3, 3).double()), around=around)
