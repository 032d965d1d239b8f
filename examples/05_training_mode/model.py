"""A network with dropout and batch normalisation, straight from training."""

import torch
from torch import nn


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4))
    module.train()
    for _ in range(10):
        module(torch.randn(8, 16) * 3 + 1)  # moves the running mean and variance
    return module, (torch.randn(2, 16),)
