"""A small network, and one whose weights do not fit."""

import torch
from torch import nn


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 4), nn.ReLU()), (torch.rand(2, 16),)


def mismatched() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    module, args = build()
    module.load_state_dict({"0.weight": torch.rand(4, 8), "1.bias": torch.rand(4)})
    return module, args
