"""A number taken with item()."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/python-value"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        peak = x.abs().max().item()  # <- here
        if peak == 0:
            peak = 1.0
        return x / peak


def build():
    return Faulty(), (torch.rand(3, 4),)
