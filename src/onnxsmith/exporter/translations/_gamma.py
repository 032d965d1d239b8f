"""The logarithm of the gamma function and its derivatives, of float64."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import torch

from onnxsmith.exporter.translations._series import piecewise


def lgamma(x: torch.Tensor) -> torch.Tensor:
    """log|Γ(x)|: Stirling's series from 8 (DLMF 5.11.1); (x - 1)(x - 2) times a smooth function below, with Γ(x + 1) =
    x·Γ(x) near 0; left of it the reflection (DLMF 5.5.3)."""
    right = torch.where(x < 0, 1 - x, x)
    small = right < 0.5
    moved = torch.where(small, right + 1, right)
    large = moved.clamp(min=8)
    far = (large - 0.5) * large.log() - large + 0.5 * math.log(2 * math.pi)
    far = torch.where(large.isinf(), math.inf, far + piecewise(_stirling, 1 / (large * large), 0, 1 / 64, 1) / large)
    near = (moved - 1) * (moved - 2) * piecewise(_between, moved, 0.5, 8, 64)
    found = torch.where(moved < 8, near, far) - torch.where(small, right, 1.0).log()
    reflected = (math.pi / ((x - x.round()) * math.pi).sin().abs()).log() - found
    return torch.where(x.isinf(), math.inf, torch.where(x < 0, reflected, found))


def digamma(x: torch.Tensor) -> torch.Tensor:
    """The derivative of log Γ, by the same three ways (DLMF 5.11.2, 5.5.2, 5.5.4). NaN at negative integers."""
    right = torch.where(x < 0, 1 - x, x)
    small = right < 1
    moved = torch.where(small, right + 1, right)
    large = moved.clamp(min=8)
    inverse = 1 / (large * large)
    far = large.log() - 0.5 / large - inverse * piecewise(_slope, inverse, 0, 1 / 64, 1)
    found = torch.where(moved < 8, piecewise(mpmath.digamma, moved, 1, 8, 48), far)
    found = found - torch.where(small, 1 / right, 0.0)
    angle = (x - x.trunc()) * math.pi
    reflected = found - math.pi * angle.cos() / angle.sin()
    return torch.where(x < 0, torch.where(x == x.trunc(), math.nan, reflected), found)


def hurwitz(s: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """ζ(s, q) = Σ (q + k)^-s. Infinite for s = 1 and at poles, NaN for s < 1 and where a power of a negative number is
    not real.

    Of a negative q the terms below zero are, but for their sign, those of ζ(s, a) that ζ(s, 1 - q) has not, where a is
    how far the first of them is from zero.
    """
    s, q = torch.broadcast_tensors(s, q)  # type: ignore[no-untyped-call]
    negative = q < 0
    below = torch.where(negative, q.trunc() - q, 1.0)
    above, to_zero, beyond = _right_hurwitz(s, torch.stack([torch.where(negative, 1 - below, q), below, 1 - q])).unbind(
        0
    )
    sign = torch.where(s % 2 == 0, 1.0, -1.0)
    found = torch.where(negative, above + sign * (to_zero - beyond), above)
    found = torch.where((q <= 0) & (s != s.floor()), math.nan, found)
    found = torch.where((q <= 0) & (q == q.floor()), math.inf, found)
    return torch.where(s == 1, math.inf, torch.where(s < 1, math.nan, found))


def _right_hurwitz(s: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """ζ(s, q) of positive q, by Euler and Maclaurin (DLMF 25.11.5) from q + 9."""
    found = torch.zeros_like(q)
    for k in range(9):
        found = found + (q + k) ** -s
    at = q + 9
    power = at**-s
    found = found + power * at / (s - 1) + 0.5 * power
    factor, divisor = s, at
    for k in range(1, 13):
        found = found + float(mpmath.bernoulli(2 * k) / mpmath.factorial(2 * k)) * factor * power / divisor
        factor = factor * (s + (2 * k - 1)) * (s + 2 * k)
        divisor = divisor * at * at
    return found


def _stirling(t: Any) -> Any:
    x = 1 / mpmath.sqrt(t)
    return x * (mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(2 * mpmath.pi) / 2)


def _slope(t: Any) -> Any:
    x = 1 / mpmath.sqrt(t)
    return (mpmath.log(x) - 1 / (2 * x) - mpmath.digamma(x)) / t


def _between(x: Any) -> Any:
    return mpmath.loggamma(x) / ((x - 1) * (x - 2))
