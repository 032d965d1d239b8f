"""The family of special functions of one number, which compute in float64 for every dtype.

`piecewise` approximates such a function by polynomials, to the precision of float64. The interval is cut into equal
pieces. On each piece the function is interpolated at Chebyshev nodes (DLMF 3.11(ii)). Its values are computed with 40
digits by mpmath, which torch installs with sympy, so this package holds no tables of coefficients.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import mpmath
import torch

from onnxsmith.exporter.translations._tensors import constant, look_up
from onnxsmith.exporter.translations.base import Sample, Translation, member


class Univariate(Translation):
    """Computes a function of one real number, element by element. Integers and bools become the default float dtype."""

    points: ClassVar[Sequence[float]]
    """Lists arguments at which the function is compared with PyTorch."""

    @abstractmethod
    def value(self, x: torch.Tensor) -> torch.Tensor:
        """Computes the function in float64."""

    def decompose(self, self_: Any, *more: Any) -> Any:
        dtype = self_.dtype if self_.is_floating_point() else torch.get_default_dtype()
        return self.value(self_.to(torch.float64), *more).to(dtype)

    def samples(self) -> Iterator[Sample]:
        points = torch.tensor(self.points, dtype=torch.float64)
        yield Sample((points,))
        yield Sample((points.float(),))
        yield Sample((points.float().reshape(-1, 1),), dynamic={0: {0: "n"}})
        yield Sample((points[:4].to(torch.int64),))
        yield Sample((points[1].float(),))
        yield Sample((torch.zeros(0, 3),))


def in_float64(*given: Any) -> tuple[list[torch.Tensor], torch.dtype]:
    """Returns two numbers or tensors, at least one a tensor, as float64, and the dtype of a function of both: floats of
    their common dtype, or the default float dtype for integers."""
    dtype = torch.result_type(*given)
    (device, *_) = (one.device for one in given if isinstance(one, torch.Tensor))
    kind: dict[str, Any] = {"dtype": torch.float64, "device": device}
    tensors = [
        one.to(torch.float64) if isinstance(one, torch.Tensor) else torch.full((), float(one), **kind) for one in given
    ]
    return tensors, dtype if dtype.is_floating_point else torch.get_default_dtype()


def univariate(
    name: str, targets: str | tuple[str, ...], value: Callable[[torch.Tensor], torch.Tensor], points: Sequence[float],
    family: type[Univariate] = Univariate,
) -> type[Univariate]:  # fmt: skip
    """Returns the translation that computes `value`, an entry of the table in its module."""
    return member(family, name, value.__module__, targets, value=value, points=points)


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
