"""Nearest-neighbour upsampling, written with views."""

import torch
from torch import nn


class ByViews(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        return x.view(n, c, h, 1, w, 1).expand(n, c, h, 2, w, 2).reshape(n, c, 2 * h, 2 * w)


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return ByViews(), (torch.rand(2, 3, 4, 5),)
