"""A conditional expression."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/branch-on-data"
DYNAMIC = ""
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, **options):
        y = x * 2 if x.mean() > 0 else x / 2  # <- here
        return torch.relu(y)


def build():
    return Faulty(), (torch.randn(3, 4),)
