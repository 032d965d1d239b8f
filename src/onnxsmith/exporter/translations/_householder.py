"""QR by Householder reflections, in the form and with the signs of LAPACK's `geqrf`, `orgqr` and `ormqr`.

A reflection is 1 - tau v vᵀ. The vector v is 0 above the diagonal of its column and 1 on the diagonal; the factored
matrix holds its elements below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from onnxsmith.exporter.translations._loops import Index, column, repeat
from onnxsmith.exporter.translations._sizes import Size, batch, identity, smaller


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
