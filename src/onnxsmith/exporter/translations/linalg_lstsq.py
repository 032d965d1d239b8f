"""`linalg.lstsq`: the solution with the least squares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgLstsq(Translation):
    """The pseudo-inverse times the right side, as the drivers `gelsy` (which says the rank) and `gels` have it. Of the
    others it depends on the values whether there are residuals; they are refused. Where `rcond` cuts a direction off,
    PyTorch's goes by pivots and this by singular values: the two solutions are apart by what was cut off."""

    targets = ()
    functions = (torch.linalg.lstsq,)

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
