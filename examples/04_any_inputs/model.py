"""A module whose forward takes a dataclass, a dictionary, an optional tensor and a number."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass
class Batch:
    tokens: torch.Tensor
    lengths: torch.Tensor


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 8)

    def forward(
        self, batch: Batch, extra: dict[str, torch.Tensor], bias: torch.Tensor | None = None, scale: float = 1.0
    ) -> torch.Tensor:
        inside = torch.arange(batch.tokens.shape[1]) < batch.lengths[:, None]
        x = self.embedding(batch.tokens) * inside[:, :, None] * scale
        x = x + extra["position"]
        return x if bias is None else x + bias


def build() -> tuple[nn.Module, tuple[Any, ...]]:
    torch.manual_seed(0)
    batch = Batch(torch.randint(0, 100, (2, 6)), torch.tensor([6, 3]))
    return Encoder(), (batch, {"position": torch.rand(6, 8)})


def with_keywords() -> tuple[nn.Module, tuple[Any, ...], dict[str, Any]]:
    module, args = build()
    return module, args, {"bias": torch.rand(8), "scale": 0.5}
