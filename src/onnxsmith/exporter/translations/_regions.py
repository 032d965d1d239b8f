"""Regions of torchvision's position-sensitive operators: rows of image number, left, top, right and bottom."""

from __future__ import annotations

from typing import Any

import torch


def own_channels(every: Any) -> Any:
    """[regions, channels / bins, height, width] from [regions, channels, height, width] of bins: of each bin, the
    channels that are its own. Channels are ordered by result, then by bin."""
    count, channels, height, width = every.shape
    bins = height * width
    by_bin = every.reshape(count, channels // bins, bins, bins)
    return by_bin.diagonal(dim1=2, dim2=3).reshape(count, channels // bins, height, width)


def channels_of_bins(every: Any) -> Any:
    """The number of the channel that each bin is computed from, as int32."""
    count, channels, height, width = every.shape
    numbers = torch.arange(channels, dtype=torch.int32).reshape(1, -1, height, width)
    return numbers.expand(count, channels // (height * width), height, width)


def regions(count: int, size: float) -> torch.Tensor:
    """Example regions in two images of this size: [count, 5], some of them beyond the border."""
    rng = torch.Generator().manual_seed(0)
    corner, sides = torch.rand(count, 2, generator=rng) * size * 0.7, torch.rand(count, 2, generator=rng) * size * 0.5
    number = torch.randint(0, 2, (count, 1), generator=rng).to(torch.float32)
    return torch.cat([number, corner, corner + sides], 1)
