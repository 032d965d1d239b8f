"""A module whose forward has an argument that it does not use."""

import torch
from torch import nn


class Score(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 2)

    def forward(self, features: torch.Tensor, mask: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.linear(features * mask)  # labels are for the loss only


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Score(), (torch.rand(2, 8), torch.ones(2, 8), torch.zeros(2, dtype=torch.int64))
