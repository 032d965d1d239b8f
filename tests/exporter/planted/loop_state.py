"""A loop over time that keeps a state."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/loop-over-axis"
DYNAMIC = "x:0=time"
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, **options):
        h = torch.zeros(4)
        seen = []
        for row in x:  # <- here
            h = torch.tanh(self.fc(h) + row)
            seen.append(h)
        return torch.stack(seen, dim=0), h


def build():
    return Faulty(), (torch.rand(3, 4),)
