"""A network with an operator that nothing translates to ONNX: the eigenvalues of a matrix that is not symmetric."""

import torch
from torch import nn


class Spectral(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(self.linear(x)).abs()


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Spectral(), (torch.rand(2, 4, 4),)
