"""QR by Householder reflections, in the form and with the signs of LAPACK's `geqrf`, `orgqr` and `ormqr`.

A reflection is 1 - tau v vᵀ. The vector v is 0 above the diagonal of its column and 1 on the diagonal; the factored
matrix holds its elements below. Least squares follow from singular values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import RealOperator
from onnxsmith.exporter.translations._loops import Index, column, repeat
from onnxsmith.exporter.translations._tensors import Size, batch, identity, smaller
from onnxsmith.exporter.translations.base import Sample, Translation


def factor(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns one matrix, with R in the upper triangle and the reflections below it, and the numbers tau."""
    count = smaller(matrix)
    scales = torch.zeros([*matrix.shape[:-2], count], dtype=matrix.dtype, device=matrix.device)
    factored, scales = repeat(count, _reflect, [matrix, scales])
    return factored, scales


def _reflect(index: Index, matrix: torch.Tensor, scales: torch.Tensor) -> Sequence[torch.Tensor]:
    """Applies the reflection that makes a column zero below its diagonal (LAPACK's `larfg`). Leaves a column that is
    zero there already."""
    rows = torch.arange(matrix.shape[-2], device=matrix.device)
    columns = torch.arange(matrix.shape[-1], device=matrix.device)
    values = column(matrix, index)
    head = column(values.unsqueeze(-2), index)
    tail = torch.where(rows > index, values, 0)
    largest = torch.maximum(tail.abs().amax(-1, keepdim=True), head.abs())
    unit = torch.where(largest > 0, largest, 1)  # keeps squares from overflow and underflow
    length = ((tail / unit).square().sum(-1, keepdim=True) + (head / unit).square()).sqrt() * unit
    # tau = 0 is the identity: LAPACK writes no reflection for a column that needs none
    done = (tail == 0).all(-1, keepdim=True)
    onto = torch.where(done, head, torch.where(head < 0, length, -length))
    scale = torch.where(done, 0, (onto - head) / torch.where(done, 1, onto))
    vector = torch.where(rows == index, 1, tail / torch.where(done, 1, head - onto))
    changed = matrix - scale.unsqueeze(-1) * vector.unsqueeze(-1) * (vector.unsqueeze(-2) @ matrix)
    kept = torch.where(rows == index, onto, torch.where(rows > index, vector, values))
    matrix = torch.where(columns > index, changed, matrix)
    matrix = torch.where(columns == index, kept.unsqueeze(-1), matrix)
    places = torch.arange(scales.shape[-1], device=matrix.device)
    return matrix, torch.where(places == index, scale, scales)


def applied(factored: torch.Tensor, scales: torch.Tensor, onto: torch.Tensor, transposed: bool = False) -> torch.Tensor:
    """Returns Q times `onto`, or Qᵀ times it if `transposed`. Q is the product of all reflections."""
    onto = onto.expand([*batch(factored, onto), *onto.shape[-2:]])
    (found,) = repeat(scales.shape[-1], _applying(transposed), [onto], [factored, scales])
    return found


def _applying(transposed: bool) -> Callable[..., Sequence[torch.Tensor]]:
    def body(index: Index, onto: torch.Tensor, factored: torch.Tensor, scales: torch.Tensor) -> Sequence[torch.Tensor]:
        at = index if transposed else scales.shape[-1] - 1 - index
        rows = torch.arange(factored.shape[-2], device=factored.device)
        below = torch.where(rows > at, column(factored, at), 0)
        vector = torch.where(rows == at, 1, below)
        scale = column(scales.unsqueeze(-2), at).unsqueeze(-1)
        return [onto - scale * vector.unsqueeze(-1) * (vector.unsqueeze(-2) @ onto)]

    return body


def orthogonal(factored: torch.Tensor, scales: torch.Tensor, columns: Size) -> torch.Tensor:
    """Returns the first `columns` columns of Q."""
    return applied(factored, scales, identity(factored.shape[-2], columns, factored))


class LinalgQr(RealOperator, targets="aten::linalg_qr"):
    """Computes `linalg.qr`, an orthogonal and an upper triangular factor, by Householder reflections.

    The product of the reflections, which is the orthogonal factor, is left out in the mode `r`.
    """

    def value(self, matrix: Any, mode: str = "reduced") -> Any:
        factored, scales = factor(matrix)
        if mode == "complete":
            return orthogonal(factored, scales, matrix.shape[-2]), factored.triu()
        upper = factored[..., : smaller(matrix), :].triu()
        if mode == "r":
            return torch.zeros([0], dtype=matrix.dtype, device=matrix.device), upper
        return orthogonal(factored, scales, smaller(matrix)), upper

    def samples(self) -> Iterator[Sample]:
        for mode in ("reduced", "complete", "r"):
            for shape in ((3, 3), (5, 2), (2, 4, 7), (0, 3), (3, 0)):
                yield Sample((torch.randn(shape), mode))
        yield Sample((torch.randn(0, 3, 3),))
        yield Sample((torch.tensor([[1.0, 2.0], [0.0, -3.0]], dtype=torch.float64),))
        yield Sample((torch.randn(2, 7, 5),), dynamic={0: {0: "batch", 1: "m", 2: "n"}})


class Geqrf(RealOperator, targets="aten::geqrf"):
    """Computes `geqrf`, QR factors in one matrix: R and its reflections, in LAPACK's form.

    PyTorch 2.13 cannot trace the operator with dynamic sizes.
    """

    def value(self, matrix: Any) -> Any:
        return factor(matrix)

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (6, 3), (2, 5, 8), (0, 3), (3, 0), (1, 4)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.randn(2, 6, 6, dtype=torch.float64),))


class LinalgHouseholderProduct(RealOperator, targets=("aten::linalg_householder_product", "aten::orgqr")):
    """Computes `linalg.householder_product`: the first columns of the product of reflections, one for each column of
    its input."""

    def value(self, factored: Any, scales: Any) -> Any:
        return orthogonal(factored, scales, factored.shape[-1])

    def samples(self) -> Iterator[Sample]:
        for shape, count in (((3, 3), 3), ((6, 3), 2), ((2, 7, 6), 6), ((3, 0), 0), ((0, 5, 4), 4), ((5, 4), 0)):
            yield Sample((torch.randn(shape), torch.rand(*shape[:-2], count)))
        double = torch.randn(5, 5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
        yield Sample(double, target="aten::orgqr")
        yield Sample((torch.randn(2, 6, 5), torch.rand(2, 5)), dynamic={0: {0: "batch"}, 1: {0: "batch"}})


class Ormqr(RealOperator, targets="aten::ormqr"):
    """Computes `ormqr`, the orthogonal factor of a QR factorisation times a matrix, one reflection after another.

    For a product from the right, the reflections are applied to the transpose.
    """

    def value(self, factored: Any, scales: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
        if left:
            return applied(factored, scales, other, transposed=transpose)
        return applied(factored, scales, other.mT, transposed=not transpose).mT

    def samples(self) -> Iterator[Sample]:
        for left, transpose in ((True, True), (True, False), (False, True), (False, False)):
            for lead in ((), (2,)):
                other = torch.randn(*lead, *((6, 4) if left else (4, 6)))
                yield Sample((torch.randn(*lead, 6, 3), torch.rand(*lead, 3), other, left, transpose))
        double = [torch.randn(7, 5), torch.rand(5), torch.randn(7, 7)]
        yield Sample(tuple(one.double() for one in double))


class LinalgLstsq(Translation, functions=(torch.linalg.lstsq,)):
    """Computes `linalg.lstsq`, the least-squares solution, as the pseudo-inverse times the right-hand side.

    The drivers are `gelsy` (which returns the rank) and `gels`. The others have no translation: whether they
    return residuals depends on values. If `rcond` cuts a direction off, PyTorch decides by pivots and this translation
    by singular values; the two solutions then differ in this direction.
    """

    def decompose(self, matrix: Any, right: Any, rcond: Any = None, *, driver: str | None = None) -> Any:
        driver = driver or "gelsy"
        if matrix.is_complex() or driver not in ("gels", "gelsy"):
            return NotImplemented
        rows, columns = matrix.shape[-2:]
        if not (isinstance(rows, int) and isinstance(columns, int)):
            return NotImplemented
        is_vector = right.dim() == 1 or (right.dim() == matrix.dim() - 1 and right.shape == matrix.shape[:-1])
        wide = right.unsqueeze(-1) if is_vector else right
        cut = {} if rcond is None or driver == "gels" else {"rtol": rcond}
        found = torch.linalg.pinv(matrix, **cut) @ wide
        none = matrix.new_zeros((0,))
        residuals, rank = none, torch.zeros((0,), dtype=torch.int64)
        if driver == "gels" and rows > columns:
            residuals = (matrix @ found - wide).square().sum(-2)
        if driver == "gelsy":
            rank = torch.linalg.matrix_rank(matrix, **cut)
        found = found.squeeze(-1) if is_vector else found
        return torch.return_types.linalg_lstsq((found, residuals, rank, none.clone()))  # type: ignore[attr-defined]

    def samples(self) -> Iterator[Sample]:
        for rows, columns in ((3, 3), (5, 3), (2, 4)):
            matrix = torch.randn(rows, columns) + 2 * torch.eye(rows, columns)
            yield Sample((matrix, torch.randn(rows, 2)))
            yield Sample((matrix, torch.randn(rows, 2)), {"driver": "gels"})
        batch = torch.randn(2, 4, 3) + 2 * torch.eye(4, 3)
        yield Sample((batch, torch.randn(2, 4)), {"rcond": 1e-6})
        yield Sample((batch, torch.randn(2, 4, 2)), dynamic={0: {0: "n"}, 1: {0: "n"}})
