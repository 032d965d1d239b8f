"""A while on data."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/loop-on-data"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, **options):
        n = 0
        while x.abs().sum() > 1:  # <- here
            x = x / 2
            n = n + 1
        return x + n


def build():
    return Faulty(), (torch.rand(3, 4),)
