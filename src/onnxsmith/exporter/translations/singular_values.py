"""Eigenvalues and singular values by Jacobi's method.

The method rotates disjoint pairs of columns, a round at a time, until a sweep finds nothing to rotate.

Pairs follow the schedule of a round-robin tournament (R. Brent and F. Luk, The solution of singular-value and symmetric
eigenvalue problems on multiprocessor arrays, SIAM J. Sci. Stat. Comput. 6(1), 1985). The first half of the columns
faces the second; between two rounds all columns but one move on by a position. A sweep ends when every two columns have
met once; each column is then at its first position again. An odd number of columns is made even by a column of zeros,
which no rotation changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import RealOperator
from onnxsmith.exporter.translations._loops import loop
from onnxsmith.exporter.translations._tensors import Size, identity, is_empty, smaller, wider
from onnxsmith.exporter.translations.base import Sample
from onnxsmith.exporter.translations.qr_decomposition import factor, orthogonal

SWEEPS = 40
"""Limits the sweeps. A choice: far above the handful that Jacobi's method needs."""


def jacobi_eigenvectors(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns eigenvalues, ascending, and eigenvectors as columns, of symmetric matrices with at least one row."""
    size = matrix.shape[-1]
    largest = matrix.abs().amax((-2, -1), keepdim=True)
    unit = torch.where(largest > 0, largest, 1)
    padded = wider(wider(matrix / unit, -1, size % 2), -2, size % 2)
    made, vectors = _sweep(_two_sided, padded, size)
    values, order = made.diagonal(0, -2, -1)[..., :size].sort(-1)
    vectors = vectors[..., :size].gather(-1, order.unsqueeze(-2).expand(matrix.shape))
    return values * unit.squeeze(-1), _signed(vectors)


def jacobi_singular_vectors(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns `matrix @ V` with orthogonal columns, the lengths of these columns, descending, and the orthogonal matrix
    V.

    The method is Hestenes' one-sided one. Columns beyond the number of rows are zero but for rounding.
    """
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
    """Returns the sign of the largest element of each column. Columns times this sign do not depend on how they were
    computed."""
    largest = vectors.abs().argmax(-2, keepdim=True)
    return torch.where(vectors.gather(-2, largest) < 0, -1, 1).to(vectors.dtype)


def _signed(vectors: torch.Tensor) -> torch.Tensor:
    return vectors * _signs(vectors)


_Turn = Callable[[torch.Tensor, Any, Any], tuple[torch.Tensor, torch.Tensor]]


def _sweep(angles: Callable[[torch.Tensor], Sequence[torch.Tensor]], matrix: torch.Tensor, size: Size) -> list[Any]:
    """Returns the matrix with all rotations applied, and their product without the rows of the padding."""
    columns = matrix.shape[-1]
    vectors = identity(size, columns, matrix)
    vectors = vectors.expand([*matrix.shape[:-2], size, columns])
    # one rotation makes a 2-by-2 matrix diagonal, so it needs no loop
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
        # each sweep starts with 0: only its own rounds decide whether it is the last
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
    """Returns the rotations that make the elements of the pairs zero, and the largest of these elements before."""
    half = matrix.shape[-1] // 2
    diagonal = matrix.diagonal(0, -2, -1)
    between = matrix[..., :half, half:].diagonal(0, -2, -1)
    return *_angle(diagonal[..., :half], diagonal[..., half:], between), between.abs().max()


def _one_sided(matrix: torch.Tensor) -> Sequence[torch.Tensor]:
    """Returns the rotations that make the columns of each pair orthogonal, and the largest cosine between them
    before."""
    half = matrix.shape[-1] // 2
    first, second = matrix[..., :half], matrix[..., half:]
    one, two, between = first.square().sum(-2), second.square().sum(-2), (first * second).sum(-2)
    lengths = one.sqrt() * two.sqrt()
    cosines = torch.where(lengths > 0, between.abs() / lengths, 0)
    return *_angle(one, two, between), cosines.max()


def _angle(first: torch.Tensor, second: torch.Tensor, between: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns cosine and sine of the smaller angle that diagonalises [[first, between], [between, second]] (Golub and
    Van Loan, Matrix Computations, 8.5)."""
    none = between == 0
    cotangent = (second - first) / torch.where(none, 1, 2 * between)
    steep = cotangent.abs() + (cotangent.square() + 1).sqrt()
    tangent = torch.where(none, 0, torch.where(cotangent < 0, -1, 1) / steep)
    cosine = (tangent.square() + 1).rsqrt()
    return cosine, cosine * tangent


def _next_round(size: Size) -> torch.Tensor:
    """Returns the column that moves to each position: the first stays, the others rotate through both halves."""
    half = size // 2
    place = torch.arange(size)
    moved = torch.where(place < half, place - 1, place + 1)
    moved = torch.where(place == size - 1, half - 1, moved)
    moved = torch.where(place == 1, half, moved)
    return torch.where(place == 0, 0, moved)


class LinalgEigh(RealOperator, targets="aten::_linalg_eigh"):
    """Computes `linalg.eigh`, eigenvalues and eigenvectors of symmetric matrices, by Jacobi's method on the requested
    triangle.

    The sign of an eigenvector is arbitrary. PyTorch's follows from rounding; here the largest element of each is
    positive.
    """

    def value(self, matrix: Any, UPLO: str = "L", compute_v: bool = True) -> Any:  # noqa: N803 — torch's name
        if UPLO.upper() == "U":
            matrix = matrix.mT
        if is_empty(matrix):
            return matrix.new_zeros(matrix.shape[:-1]), matrix.new_zeros(matrix.shape if compute_v else [0])
        values, vectors = jacobi_eigenvectors(matrix.tril() + matrix.tril(-1).mT)
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


class LinalgSvd(RealOperator, targets="aten::_linalg_svd"):
    """Computes `linalg.svd`, singular values and vectors, by one-sided Jacobi and a QR factorisation.

    Jacobi gives V and the columns of U times their singular values. The QR factorisation of these gives U, and also the
    columns that are missing because a singular value is 0 or all columns are requested. The sign of a pair of vectors
    is arbitrary. PyTorch's follows from rounding; here the largest element of the shorter vector is positive.
    """

    def value(
        self, matrix: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
    ) -> Any:
        rows, columns = matrix.shape[-2:]
        if isinstance(rows, int) and isinstance(columns, int) and rows < columns:
            right, values, left = self.value(matrix.mT, full_matrices, compute_uv)
            return (left.mT, values, right.mT) if compute_uv else (left, values, right)
        least = smaller(matrix)
        if is_empty(matrix):
            scaled, values = matrix, matrix.new_zeros([*matrix.shape[:-2], columns])
            right = identity(columns, columns, matrix).expand([*matrix.shape[:-2], columns, columns])
        else:
            scaled, values, right = jacobi_singular_vectors(matrix)
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
    """Returns results that do not depend on signs: the values, the product, and UᵀU and VVᵀ, which show orthonormal
    vectors."""
    left, values, right = op(*args)
    least = values.shape[-1]
    product = (left[..., :least] * values.unsqueeze(-2)) @ right[..., :least, :]
    return values, product, left.mT @ left, right @ right.mT


def _directions(scaled: torch.Tensor, columns: Any) -> torch.Tensor:
    """Returns orthonormal columns along the given orthogonal ones, and others where these are zero or missing."""
    factored, scales = factor(scaled)
    found = orthogonal(factored, scales, columns)
    signs = torch.where(factored.diagonal(0, -2, -1) < 0, -1, 1).to(scaled.dtype)
    signs = wider(signs, -1, columns - signs.shape[-1], 1.0)
    return found * signs.unsqueeze(-2)


class LinalgPinv(RealOperator, targets="aten::linalg_pinv.atol_rtol_tensor"):
    """Computes `linalg.pinv`, the Moore-Penrose pseudo-inverse, from the singular values above both tolerances.

    A `hermitian` matrix uses its eigenvalues. If no tolerance is given, the relative one is the dtype's epsilon times
    the larger of rows and columns.
    """

    def value(self, matrix: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
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
            values, vectors = jacobi_eigenvectors(matrix.tril() + matrix.tril(-1).mT)
            return (vectors * _reciprocal(values, values.abs(), absolute, relative)) @ vectors.mT
        if isinstance(rows, int) and isinstance(columns, int) and rows < columns:
            return self.value(matrix.mT, atol=atol, rtol=rtol).mT
        scaled, values, right = jacobi_singular_vectors(matrix)
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
    """Calls the operator on a matrix of rank 2, whose other singular values are rounding errors."""
    flat = matrix[:, :2] @ (matrix[:2, :].tanh() + 2 * torch.eye(2, 4))
    return op(flat, rtol=torch.full((), 1e-6, dtype=matrix.dtype))


def bounded(op: Any, matrix: torch.Tensor) -> Any:
    """Calls the operator with both tolerances, the absolute one different for each matrix of the batch."""
    absolute = torch.arange(2, dtype=matrix.dtype) / 4
    return op(matrix.tanh() + 3 * torch.eye(4), atol=absolute, rtol=torch.full((), 0.125))


def symmetrical(op: Any, matrix: torch.Tensor, **kwargs: Any) -> Any:
    """Calls the operator on a well-conditioned symmetric matrix."""
    return op(matrix.tanh() + matrix.mT.tanh() + 9 * torch.eye(4).flip(-1), **kwargs)


def _reciprocal(values: torch.Tensor, sizes: torch.Tensor, absolute: Any, relative: Any) -> torch.Tensor:
    """Returns 1 / values as a row, with 0 where a value is at or below the bound."""
    bound = torch.maximum(absolute.unsqueeze(-1), relative.unsqueeze(-1) * sizes.amax(-1, keepdim=True))
    kept = sizes > bound
    return torch.where(kept, 1 / torch.where(kept, values, 1), 0).unsqueeze(-2)
