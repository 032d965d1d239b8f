"""A table of positions as long as the example."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/table-length"
DYNAMIC = "x:0=batch,1=time"
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.rand(6, 4))

    def forward(self, x):
        y = x + self.table  # <- here
        return torch.cat([x, y], -1)


def build():
    return Faulty(), (torch.rand(2, 6, 4),)
