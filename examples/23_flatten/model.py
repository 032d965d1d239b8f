"""A convolution, a flattening by `view`, and a linear layer."""

import torch
from torch import nn


class Flatten(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4 * 6 * 6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x)
        return self.head(x.view(x.size(0), -1))


def build():
    torch.manual_seed(0)
    return Flatten(), (torch.rand(2, 3, 8, 8),)
