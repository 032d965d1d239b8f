"""Approximates functions of one real number by polynomials, to the precision of float64.

The interval is cut into equal pieces. On each piece the function is interpolated at Chebyshev nodes (DLMF 3.11(ii)).
Its values are computed with 40 digits by mpmath, which torch installs with sympy, so this package holds no tables of
coefficients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mpmath
import torch

from onnxsmith.exporter.translations._constants import constant, look_up

_TERMS = 16


def piecewise(function: Callable[[Any], Any], x: torch.Tensor, low: float, high: float, pieces: int) -> torch.Tensor:
    """Computes `function` at `x`, float64. `function` is smooth and takes mpmath's numbers. Outside [low, high] the
    result is undefined."""
    scaled = (x - low) * (pieces / (high - low))
    piece = scaled.floor().to(torch.int64).clamp(0, pieces - 1)
    place = (scaled - piece) * 2 - 1
    rows = look_up(constant(_coefficients(function, low, high, pieces), torch.float64), piece)
    powers = place.unsqueeze(-1).pow(torch.arange(_TERMS, dtype=torch.float64, device=x.device))
    return (rows * powers).sum(-1)


@functools.cache
def _coefficients(
    function: Callable[[Any], Any], low: float, high: float, pieces: int
) -> tuple[tuple[float, ...], ...]:
    """Returns for each piece the coefficients of the powers of the position in the piece, which goes from -1 to 1."""
    with mpmath.workdps(40):
        nodes = [mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * _TERMS)) for k in range(_TERMS)]
        width = (mpmath.mpf(high) - low) / pieces
        found = []
        for piece in range(pieces):
            values = [function(low + width * (piece + (node + 1) / 2)) for node in nodes]
            found.append(tuple(float(c) for c in _powers(nodes, values)))
    return tuple(found)


def _powers(nodes: list[Any], values: list[Any]) -> list[Any]:
    """Returns the coefficients of the polynomial through the points.

    Computes Chebyshev coefficients by their discrete orthogonality, then writes each Chebyshev polynomial in powers by
    T(k+1) = 2x·T(k) - T(k-1).
    """
    count = len(nodes)
    total = [mpmath.mpf(0)] * count
    before, now = [mpmath.mpf(0)] * count, [mpmath.mpf(1)] + [mpmath.mpf(0)] * (count - 1)
    for k in range(count):
        angle = mpmath.pi * k / (2 * count)
        weight = sum(v * mpmath.cos(angle * (2 * j + 1)) for j, v in enumerate(values)) * (1 if k == 0 else 2) / count
        total = [t + weight * n for t, n in zip(total, now, strict=True)]
        shifted = [mpmath.mpf(0), *now[:-1]]
        factor = 1 if k == 0 else 2
        before, now = now, [factor * s - b for s, b in zip(shifted, before, strict=True)]
    return total
