"""A submodule that sorts numbers in Python, and what to trace in its place."""

import torch
from torch import nn

import onnxsmith


class Best(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = 0.0
        for value in sorted(x.flatten().tolist(), reverse=True)[:2]:
            total += value
        return x * total


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.best = Best()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.best(self.linear(x))


@onnxsmith.rewrite(Best)
def best(self: Best, x: torch.Tensor) -> torch.Tensor:
    return x * x.flatten().topk(2).values.sum()


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Net(), (torch.rand(3, 4),)
