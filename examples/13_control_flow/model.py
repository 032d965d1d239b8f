"""An `if` on a value, a loop over the rows of a tensor, and a `while`."""

import torch
from torch import nn


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x - 1


class Rows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(x.shape[1])
        for row in x:
            state = torch.tanh(state + row)
        return state


class Halve(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.abs().max() > 1:
            x = x / 2
        return x


def branch() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Branch(), (torch.rand(2, 3),)


def rows() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Rows(), (torch.rand(4, 3),)


def halve() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    return Halve(), (torch.rand(4, 3) * 20,)
