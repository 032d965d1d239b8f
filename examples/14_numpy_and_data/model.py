"""Two ways to lose a value from a trace: numpy, and `.data`."""

import numpy as np
import torch
from torch import nn


class Centre(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = np.mean(x.detach().numpy(), axis=1, keepdims=True)
        return x - torch.from_numpy(mean)


class Normalise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.data.norm()


def with_numpy() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Centre(), (torch.rand(2, 8),)


def with_data() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Normalise(), (torch.rand(2, 8),)
