"""Rounds matrices by GPTQ: the rows that follow compensate for the rounding error of each row.

GPTQ (Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", arXiv
2210.17323) rounds rows one after the other. It adds the rounding error of each row to the rows that follow, as far as
their inputs are correlated. onnxruntime's own GPTQ (1.31 and 1.32) is not used: it multiplies by the half of a
triangular matrix that is zero, so that it only rounds to the nearest step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxsmith.precision.scaled_blocks import Array, Blocks, packed

_DAMPING = 0.01
"""Added to the diagonal of the moments, as a share of its mean (section 3.3)."""
_TRIES = 4
"""How many dampings are tried, each ten times the last, until the moments have an inverse. A choice."""


def compensated(matrix: Array, moments: Array, block: int, rounded: Callable[[Array], Blocks]) -> Blocks:
    """Quantises the float32 matrix [rows, columns] in blocks of 4 bits. Keeps the products with inputs of these second
    moments, float64 [rows, rows], close to those of the matrix. `rounded` gives the scales and zero points of one block
    of rows. A column for which plain rounding has the smaller error is rounded plainly."""
    rows, columns = matrix.shape
    plain = rounded(matrix)
    factor = inverse_factor(moments)
    if factor is None:
        return plain
    left = matrix.astype(np.float64)
    count = plain.data.shape[1]
    numbers = np.zeros((columns, count * block), np.uint8)
    scales, zeros = np.zeros((columns, count), np.float32), np.zeros((columns, count), np.uint8)
    for index in range(count):
        start, end = index * block, min((index + 1) * block, rows)
        part = rounded(left[start:end].astype(np.float32))
        scales[:, index] = part.scales[:, 0]
        zeros[:, index] = 8 if part.zeros is None else part.zeros[:, 0]
        whole = rounded_in_turn(left, factor, (start, end), part.scales[:, 0], (0, 15), zeros[:, index])
        numbers[:, start:end] = whole.T
        # The padding of the last block is 0: it has the number of the zero point.
        numbers[:, end : (index + 1) * block] = zeros[:, index, None]
    data = packed(numbers, plain.bits).reshape(columns, count, -1)
    found = Blocks(rows, plain.bits, data, scales, None if plain.zeros is None else zeros)
    closer = _lost(found, matrix, moments) < _lost(plain, matrix, moments)
    return found.part(np.broadcast_to(closer[:, None], scales.shape), plain)


def rounded_in_turn(
    left: Array, factor: Array, span: tuple[int, int], scales: Array, limits: tuple[int, int], zeros: Array | float = 0
) -> Array:
    """Rounds the rows of a span to numbers between `limits`, int16 [end - start, columns]. Adds the error of each row
    to all rows that follow it in `left`, float64 [rows, columns], in place. `scales` and `zeros` are those of the
    columns."""
    start, end = span
    steps = np.where(scales == 0, 1.0, scales.astype(np.float64))
    offsets = np.asarray(zeros, np.float64)
    numbers = np.zeros((end - start, left.shape[1]), np.int16)
    lost = np.zeros((end - start, left.shape[1]))
    for row in range(start, end):
        whole = np.clip(np.round(left[row] / steps) + offsets, *limits)
        numbers[row - start] = whole
        error = (left[row] - (whole - offsets) * scales) / factor[row, row]
        left[row:end] -= np.outer(factor[row, row:end], error)
        lost[row - start] = error
    left[end:] -= factor[start:end, end:].T @ lost
    return numbers


def inverse_factor(moments: Array) -> Array | None:
    """Returns the upper triangular factor of the inverse of second moments float64 [n, n]; None if there is no inverse.
    The factor says how much of an element's error each following element compensates for."""
    diagonal = np.diag(moments).copy()
    diagonal[diagonal == 0] = 1.0  # an input that was always 0
    share = _DAMPING * float(diagonal.mean())
    for _ in range(_TRIES):
        damped = moments.copy()
        np.fill_diagonal(damped, diagonal + share)
        try:
            factor = np.asarray(np.linalg.cholesky(np.linalg.inv(damped)).T)
        except np.linalg.LinAlgError:
            factor = np.full(1, np.nan)
        if np.isfinite(factor).all():
            return factor
        share *= 10
    return None


def _lost(blocks: Blocks, matrix: Array, moments: Array) -> Array:
    """Returns the squared error of the product, for each column."""
    apart = (blocks.matrix() - matrix).astype(np.float64)
    return np.asarray(np.einsum("rc,rc->c", apart, moments @ apart))
