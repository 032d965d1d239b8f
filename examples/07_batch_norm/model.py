"""Batch normalisation behind a convolution, in front of one, and in front of a padded one."""

import torch
from torch import nn


def _trained(*layers: nn.Module) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    module = nn.Sequential(*layers)
    for _ in range(10):
        module(torch.randn(4, 3, 8, 8) * 2 + 1)
    return module.eval(), (torch.randn(1, 3, 8, 8),)


def behind() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return _trained(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())


def in_front() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return _trained(nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3), nn.ReLU())


def in_front_of_padding() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return _trained(nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
