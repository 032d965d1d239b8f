"""QR by Householder reflections, and least squares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _householder
from onnxsmith.exporter.translations._sizes import smaller
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgQr(Translation, targets="aten::linalg_qr"):
    """Computes `linalg.qr`, an orthogonal and an upper triangular factor, by Householder reflections.

    The product of the reflections, which is the orthogonal factor, is left out in the mode `r`.
    """

    def decompose(self, matrix: Any, mode: str = "reduced") -> Any:
        if matrix.is_complex():
            return NotImplemented
        factored, scales = _householder.factor(matrix)
        if mode == "complete":
            return _householder.orthogonal(factored, scales, matrix.shape[-2]), factored.triu()
        upper = factored[..., : smaller(matrix), :].triu()
        if mode == "r":
            return torch.zeros([0], dtype=matrix.dtype, device=matrix.device), upper
        return _householder.orthogonal(factored, scales, smaller(matrix)), upper

    def samples(self) -> Iterator[Sample]:
        for mode in ("reduced", "complete", "r"):
            for shape in ((3, 3), (5, 2), (2, 4, 7), (0, 3), (3, 0)):
                yield Sample((torch.randn(shape), mode))
        yield Sample((torch.randn(0, 3, 3),))
        yield Sample((torch.tensor([[1.0, 2.0], [0.0, -3.0]], dtype=torch.float64),))
        yield Sample((torch.randn(2, 7, 5),), dynamic={0: {0: "batch", 1: "m", 2: "n"}})


class Geqrf(Translation, targets="aten::geqrf"):
    """Computes `geqrf`, QR factors in one matrix: R and its reflections, in LAPACK's form.

    PyTorch 2.13 cannot trace the operator with dynamic sizes.
    """

    def decompose(self, matrix: Any) -> Any:
        return NotImplemented if matrix.is_complex() else _householder.factor(matrix)

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (6, 3), (2, 5, 8), (0, 3), (3, 0), (1, 4)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.randn(2, 6, 6, dtype=torch.float64),))


class LinalgHouseholderProduct(Translation, targets=("aten::linalg_householder_product", "aten::orgqr")):
    """Computes `linalg.householder_product`: the first columns of the product of reflections, one for each column of
    its input."""

    def decompose(self, factored: Any, scales: Any) -> Any:
        if factored.is_complex():
            return NotImplemented
        return _householder.orthogonal(factored, scales, factored.shape[-1])

    def samples(self) -> Iterator[Sample]:
        for shape, count in (((3, 3), 3), ((6, 3), 2), ((2, 7, 6), 6), ((3, 0), 0), ((0, 5, 4), 4), ((5, 4), 0)):
            yield Sample((torch.randn(shape), torch.rand(*shape[:-2], count)))
        double = torch.randn(5, 5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
        yield Sample(double, target="aten::orgqr")
        yield Sample((torch.randn(2, 6, 5), torch.rand(2, 5)), dynamic={0: {0: "batch"}, 1: {0: "batch"}})


class Ormqr(Translation, targets="aten::ormqr"):
    """Computes `ormqr`, the orthogonal factor of a QR factorisation times a matrix, one reflection after another.

    For a product from the right, the reflections are applied to the transpose.
    """

    def decompose(self, factored: Any, scales: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
        if factored.is_complex():
            return NotImplemented
        if left:
            return _householder.applied(factored, scales, other, transposed=transpose)
        return _householder.applied(factored, scales, other.mT, transposed=not transpose).mT

    def samples(self) -> Iterator[Sample]:
        for left, transpose in ((True, True), (True, False), (False, True), (False, False)):
            for batch in ((), (2,)):
                other = torch.randn(*batch, *((6, 4) if left else (4, 6)))
                yield Sample((torch.randn(*batch, 6, 3), torch.rand(*batch, 3), other, left, transpose))
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
