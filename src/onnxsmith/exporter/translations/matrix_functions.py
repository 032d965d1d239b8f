"""The matrix exponential, and the error check after a factorisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import RealOperator
from onnxsmith.exporter.translations._loops import loop
from onnxsmith.exporter.translations._tensors import identity, is_empty
from onnxsmith.exporter.translations.base import Sample, Translation

_DEGREE = 19
"""Is the degree of the Taylor polynomial. For a norm of at most 1 its error is below 1/20! < 2^-61, less than float64
rounds."""


class LinalgMatrixExp(RealOperator, targets=("aten::linalg_matrix_exp", "aten::matrix_exp")):
    """Computes `linalg.matrix_exp`, the exponential of square matrices, by scaling and squaring.

    Halves the matrix until its norm is at most 1, computes the Taylor polynomial in four powers of the matrix (M.
    Paterson and L. Stockmeyer), then squares as often as it halved (C. Moler and C. Van Loan, Nineteen dubious ways to
    compute the exponential of a matrix, SIAM Review 45(1), 2003, method 3).
    """

    def value(self, matrix: Any) -> Any:
        if is_empty(matrix):
            return matrix.clone()
        norm = matrix.abs().sum(-2, keepdim=True).amax(-1, keepdim=True)
        halvings = torch.where(norm > 1, norm, 1).log2().ceil()
        found = _taylor(matrix / halvings.exp2())

        def goes_on(index: torch.Tensor, _: torch.Tensor, halvings: torch.Tensor) -> torch.Tensor:
            return index < halvings.max()

        def squared(index: torch.Tensor, found: torch.Tensor, halvings: torch.Tensor) -> Sequence[torch.Tensor]:
            return index + 1, torch.where(index < halvings, found @ found, found)

        index = torch.zeros((), dtype=matrix.dtype)
        return loop(goes_on, squared, [index, found], [halvings])[1]

    def samples(self) -> Iterator[Sample]:
        for shape in ((0, 0), (1, 1), (2, 3, 3), (0, 4, 4), (6, 6)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.zeros(3, 3),))
        yield Sample((torch.randn(5, 5, dtype=torch.float64),))
        yield Sample((torch.randn(2, 4, 4),), dynamic={0: {0: "batch", 1: "n", 2: "n"}})


def _taylor(matrix: torch.Tensor) -> torch.Tensor:
    square = matrix @ matrix
    ones = identity(matrix.shape[-1], matrix.shape[-1], matrix).expand(matrix.shape)
    powers = torch.stack([ones, matrix, square, square @ matrix], -1)
    factorials = [torch.full([1], math.factorial(k)) for k in range(_DEGREE + 1)]  # integers, which are exact
    parts = [(powers / torch.cat(factorials[k : k + 4])).sum(-1) for k in range(0, _DEGREE + 1, 4)]
    fourth = square @ square
    result = parts.pop()
    while parts:
        result = result @ fourth + parts.pop()
    return result


class LinalgCheckErrors(Translation, targets="aten::_linalg_check_errors"):
    """Drops PyTorch's check for a failed factorisation: a graph cannot raise, and continues with the result as it
    is."""

    def decompose(self, info: Any, api_name: str, *, is_matrix: bool) -> Any:
        return None

    def samples(self) -> Iterator[Sample]:
        def around(op: Any, matrix: torch.Tensor) -> Any:
            found, info = torch.linalg.inv_ex(matrix + 4 * torch.eye(2))
            op(info, "linalg.inv", is_matrix=True)
            return found

        yield Sample((torch.randn(2, 2).tanh(),), around=around)
