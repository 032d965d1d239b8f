"""A sum over the rows, begun with 0."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/loop-over-axis"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        total = 0.0
        for i in range(len(x)):  # <- here
            total = total + x[i] * x[i]
        return total


def build():
    return Faulty(), (torch.rand(3, 4),)
