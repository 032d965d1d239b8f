"""A network with two heads: a class and a box."""

import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classes = nn.Linear(8, 10)
        self.box = nn.Linear(8, 4)

    def forward(self, image: torch.Tensor) -> dict[str, torch.Tensor]:
        features = self.body(image)
        return {"scores": self.classes(features).softmax(-1), "box": self.box(features)}


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return TwoHeads(), (torch.rand(1, 3, 16, 16),)
