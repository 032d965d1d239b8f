"""`special.airy_ai`: the Airy function Ai."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import mpmath
import torch

from onnxsmith.exporter.translations._series import piecewise
from onnxsmith.exporter.translations._univariate import Univariate
from onnxsmith.exporter.translations.base import Sample

_FAR = 16 / 3
"""⅔·4^(3/2), the phase where the asymptotic forms begin."""


class AiryAi(Univariate):
    """A polynomial between -4 and 4. Beyond, the amplitudes of the asymptotic forms (DLMF 9.7.5, 9.7.9), smooth in 1/ζ
    for ζ = ⅔·|x|^(3/2). Held in float32 only: PyTorch's own float64 has six digits."""

    targets = ("aten::special_airy_ai",)
    kernel_error = 2e-5
    points = (0.0, 1.5, -2.0, 4.0, -4.5, 3.5, 5.0, 9.0, 2.0, float("nan"))

    def value(self, x: torch.Tensor) -> torch.Tensor:
        size = x.abs().clamp(min=4)
        phase = 2 / 3 * size * size.sqrt()
        place, root = _FAR / phase, size.sqrt().sqrt() * math.sqrt(math.pi)
        falling = piecewise(_falling, place, 0, 1, 4) * (-phase).exp() / (2 * root)
        angle = phase - math.pi / 4
        waving = piecewise(_COSINE, place, 0, 1, 8) * angle.cos() + piecewise(_SINE, place, 0, 1, 8) * angle.sin()
        near = piecewise(mpmath.airyai, x, -4, 4, 8)
        return torch.where(x > 4, falling, torch.where(x < -4, waving / root, near))

    def samples(self) -> Iterator[Sample]:
        yield from (sample for sample in super().samples() if sample.args[0].dtype != torch.float64)


def _falling(u: Any) -> Any:
    phase = _FAR / u
    x = (phase * 3 / 2) ** (mpmath.mpf(2) / 3)
    return 2 * mpmath.sqrt(mpmath.pi) * x**0.25 * mpmath.exp(phase) * mpmath.airyai(x)


def _waving(sine: bool, u: Any) -> Any:
    phase = _FAR / u
    x = (phase * 3 / 2) ** (mpmath.mpf(2) / 3)
    first, second = mpmath.airyai(-x), mpmath.airybi(-x)
    s, c = mpmath.sin(phase - mpmath.pi / 4), mpmath.cos(phase - mpmath.pi / 4)
    return mpmath.sqrt(mpmath.pi) * x**0.25 * (first * s + second * c if sine else first * c - second * s)


_COSINE, _SINE = functools.partial(_waving, False), functools.partial(_waving, True)
