"""Sums over windows; the first has the size of its example in the code."""

import torch
from torch import nn


class Frozen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.relu()
        return x.reshape(2, 4, 2, 4).sum(2)


class Mended(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.relu()
        return x.reshape(x.shape[0], 4, 2, 4).sum(2)


def frozen() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Frozen(), (torch.rand(2, 8, 4),)


def mended() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Mended(), (torch.rand(2, 8, 4),)
