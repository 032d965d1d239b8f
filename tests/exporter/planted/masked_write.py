"""A masked write to an input, by its own values."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/input-written"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        x[x < 0.5] = 0.0  # <- here
        return self.fc(x)


def build():
    return Faulty(), (torch.rand(3, 4),)
