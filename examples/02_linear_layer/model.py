"""One linear layer: three outputs of four inputs, without a bias."""

import torch
from torch import nn


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return nn.Linear(4, 3, bias=False), (torch.rand(1, 1, 1, 4),)
