"""A stack of transformer layers as users write them, with shape arithmetic that each exporter writes in its own way."""

from __future__ import annotations

import torch
from torch import nn


class Layer(nn.Module):
    """Attention and a feed-forward network, each behind a normalization and with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        size = width // self.heads
        q, k, v = self.qkv(self.norm(x)).reshape(batch, time, 3, self.heads, size).permute(2, 0, 3, 1, 4).unbind(0)
        attention = torch.softmax(q @ k.transpose(-1, -2) / size**0.5, -1) @ v
        x = x + self.out(attention.transpose(1, 2).reshape(batch, time, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Stack(nn.Module):
    """So many layers, and a head."""

    def __init__(self, layers: int, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))
