"""Activations and normalisations that newer opsets have as one operator."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.groups = nn.GroupNorm(2, 4)
        self.rms = nn.RMSNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.gelu(self.norm(x))
        x = nn.functional.hardswish(self.groups(x))
        return nn.functional.silu(self.rms(x))


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Block(), (torch.randn(2, 4, 16),)


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v)


def attention() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 8, 16)
    return Attention(), (q, k, v)
