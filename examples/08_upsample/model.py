"""Upsampling to a fixed size, and by a fixed factor."""

import torch
from torch import nn


class Upsample(nn.Module):
    def __init__(self, **options: object) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(x, **self.options)


def to_size() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Upsample(size=(8, 8)), (torch.rand(2, 3, 4, 4),)


def by_factor() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Upsample(scale_factor=2.0, mode="bilinear"), (torch.rand(2, 3, 4, 4),)


def corners() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Upsample(scale_factor=2.0, mode="bicubic", align_corners=True), (torch.rand(2, 3, 4, 4),)
