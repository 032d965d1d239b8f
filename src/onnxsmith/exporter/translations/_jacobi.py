"""Jacobi's method: rotates disjoint pairs of columns, a round at a time, until a sweep finds nothing to rotate.

Columns are taken in pairs by the schedule of a round-robin tournament (R. Brent and F. Luk, The solution of singular-
value and symmetric eigenvalue problems on multiprocessor arrays, SIAM J. Sci. Stat. Comput. 6(1), 1985): the first half
of the columns faces the second, and between two rounds all columns but one move on by a place. After a sweep, in which
every two columns have met once, each is back where it was. An odd number of columns is made even by one of zeros, which
no rotation touches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._loops import loop
from onnxsmith.exporter.translations._sizes import Size, identity, wider

SWEEPS = 40
"""Largest number of sweeps; a choice: far above the handful that Jacobi's method needs."""


def symmetric(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Eigenvalues, ascending, and eigenvectors as columns, of symmetric matrices with at least one row."""
    size = matrix.shape[-1]
    largest = matrix.abs().amax((-2, -1), keepdim=True)
    unit = torch.where(largest > 0, largest, 1)
    padded = wider(wider(matrix / unit, -1, size % 2), -2, size % 2)
    made, vectors = _sweep(_two_sided, padded, size)
    values, order = made.diagonal(0, -2, -1)[..., :size].sort(-1)
    vectors = vectors[..., :size].gather(-1, order.unsqueeze(-2).expand(matrix.shape))
    return values * unit.squeeze(-1), _signed(vectors)


def singular(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`matrix @ V`, whose columns are orthogonal; their lengths, descending; and V, square and orthogonal: Hestenes'
    one-sided method. The columns after the rows' number are zero but for rounding."""
    size = matrix.shape[-1]
    largest = matrix.abs().amax((-2, -1), keepdim=True)
    unit = torch.where(largest > 0, largest, 1)
    padded = wider(matrix / unit, -1, size % 2)
    made, vectors = _sweep(_one_sided, padded, size)
    lengths, order = made[..., :size].square().sum(-2).sqrt().sort(-1, descending=True)
    order = order.unsqueeze(-2)
    vectors = vectors[..., :size].gather(-1, order.expand([*matrix.shape[:-2], size, size]))
    made = made[..., :size].gather(-1, order.expand(matrix.shape))
    signs = _signs(vectors)
    return made * signs * unit, lengths * unit.squeeze(-1), vectors * signs


def _signs(vectors: torch.Tensor) -> torch.Tensor:
    """The sign of each column's largest element: columns times it are the same however they were found."""
    largest = vectors.abs().argmax(-2, keepdim=True)
    return torch.where(vectors.gather(-2, largest) < 0, -1, 1).to(vectors.dtype)


def _signed(vectors: torch.Tensor) -> torch.Tensor:
    return vectors * _signs(vectors)


Turn = Callable[[torch.Tensor, Any, Any], tuple[torch.Tensor, torch.Tensor]]


def _sweep(angles: Callable[[torch.Tensor], Sequence[torch.Tensor]], matrix: torch.Tensor, size: Size) -> list[Any]:
    """The matrix with all rotations applied, and their product without the rows of the padding."""
    columns = matrix.shape[-1]
    vectors = identity(size, columns, matrix)
    vectors = vectors.expand([*matrix.shape[:-2], size, columns])
    if isinstance(columns, int) and columns == 2 and angles is _two_sided:
        return _rotated(angles, matrix, vectors)[:2]
    tolerance = torch.finfo(matrix.dtype).eps

    def goes_on(sweep: torch.Tensor, place: torch.Tensor, worst: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return (sweep == 0) | ((sweep < SWEEPS) & ((place > 0) | (worst > tolerance)))

    def body(
        sweep: torch.Tensor, place: torch.Tensor, worst: torch.Tensor, made: torch.Tensor, vectors: torch.Tensor
    ) -> Sequence[torch.Tensor]:
        made, vectors, found = _rotated(angles, made, vectors)
        order = _next_round(made.shape[-1])
        made = made.index_select(-1, order)
        if angles is _two_sided:
            made = made.index_select(-2, order)
        worst = torch.maximum(torch.where(place == 0, 0, worst), found)
        is_last = place >= made.shape[-1] - 2
        place = torch.where(is_last, 0, place + 1)
        return sweep + is_last.to(torch.int64), place, worst, made, vectors.index_select(-1, order)

    worst = torch.zeros((), dtype=matrix.dtype)
    none = torch.zeros((), dtype=torch.int64)
    return loop(goes_on, body, [none, none, worst, matrix, vectors])[3:]


def _rotated(angles: Any, made: torch.Tensor, vectors: torch.Tensor) -> list[torch.Tensor]:
    cosine, sine, found = angles(made)
    rotated = _turned(made, cosine.unsqueeze(-2), sine.unsqueeze(-2))
    if angles is _two_sided:
        rotated = _turned(rotated.mT, cosine.unsqueeze(-2), sine.unsqueeze(-2)).mT
    return [rotated, _turned(vectors, cosine.unsqueeze(-2), sine.unsqueeze(-2)), found]


def _turned(matrix: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    half = matrix.shape[-1] // 2
    first, second = matrix[..., :half], matrix[..., half:]
    return torch.cat([cosine * first - sine * second, sine * first + cosine * second], -1)


def _two_sided(matrix: torch.Tensor) -> Sequence[torch.Tensor]:
    """The rotations that make the elements of the pairs zero, and the largest of these elements before."""
    half = matrix.shape[-1] // 2
    diagonal = matrix.diagonal(0, -2, -1)
    between = matrix[..., :half, half:].diagonal(0, -2, -1)
    return *_angle(diagonal[..., :half], diagonal[..., half:], between), between.abs().max()


def _one_sided(matrix: torch.Tensor) -> Sequence[torch.Tensor]:
    """The rotations that make the columns of the pairs orthogonal, and the largest cosine between them before."""
    half = matrix.shape[-1] // 2
    first, second = matrix[..., :half], matrix[..., half:]
    one, two, between = first.square().sum(-2), second.square().sum(-2), (first * second).sum(-2)
    lengths = one.sqrt() * two.sqrt()
    cosines = torch.where(lengths > 0, between.abs() / lengths, 0)
    return *_angle(one, two, between), cosines.max()


def _angle(first: torch.Tensor, second: torch.Tensor, between: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of the smaller angle that diagonalises [[first, between], [between, second]] (Golub and Van
    Loan, Matrix Computations, 8.5)."""
    none = between == 0
    cotangent = (second - first) / torch.where(none, 1, 2 * between)
    steep = cotangent.abs() + (cotangent.square() + 1).sqrt()
    tangent = torch.where(none, 0, torch.where(cotangent < 0, -1, 1) / steep)
    cosine = (tangent.square() + 1).rsqrt()
    return cosine, cosine * tangent


def _next_round(size: Size) -> torch.Tensor:
    """The column that moves to each position: the first stays, the others rotate through both halves."""
    half = size // 2
    place = torch.arange(size)
    moved = torch.where(place < half, place - 1, place + 1)
    moved = torch.where(place == size - 1, half - 1, moved)
    moved = torch.where(place == 1, half, moved)
    return torch.where(place == 0, 0, moved)
