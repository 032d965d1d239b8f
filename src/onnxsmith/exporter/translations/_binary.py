"""Exact exponents of floats, by arithmetic and a table of powers of two."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._constants import constant, look_up

_LEAST = {torch.float32: -149, torch.float64: -1074, torch.float16: -24}
"""The exponent of the smallest number above zero."""


def exponent(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """⌊log₂|x|⌋ as int64, and two to that power; the smallest exponent for 0, infinities and NaN. The computed
    logarithm may be off by one; a comparison with the neighbouring powers corrects it."""
    size = torch.where(x.isfinite(), x, 0.0).abs()
    least, powers = table(x)
    guess = torch.where(size == 0, 1.0, size).log2().floor().to(torch.int64)
    place = (torch.where(size == 0, least, guess) - least).clamp(0, powers.shape[0] - 1)
    place = (place - (look_up(powers, place) > size).to(torch.int64)).clamp(min=0)
    above = (place + 1).clamp(max=powers.shape[0] - 1)
    place = torch.where((look_up(powers, above) <= size) & (size > 0), above, place)
    return place + least, look_up(powers, place)


def table(x: torch.Tensor) -> tuple[int, torch.Tensor]:
    """The least exponent of the dtype, and every power of two that it has from there."""
    least = _LEAST[x.dtype]
    _, most = torch.finfo(x.dtype).max.hex().split("p")
    return least, constant([2.0**e for e in range(least, int(most) + 1)], x.dtype)
