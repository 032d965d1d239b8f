"""A branch on a sum that returns."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/branch-on-data"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, **options):
        if x.sum() > 0:  # <- here
            return x * 2
        return x - 1


def build():
    return Faulty(), (torch.randn(3, 4),)
