"""Sampling at the places of a grid, which ONNX has since opset 16."""

import torch
from torch import nn


class Grid(nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return nn.functional.grid_sample(x, grid, align_corners=False)


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Grid(), (torch.rand(1, 3, 8, 8), torch.rand(1, 4, 4, 2) * 2 - 1)
