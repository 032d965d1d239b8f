"""A branch with several assignments."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/branch-on-data"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, **options):
        scale = x.abs().max()
        if scale.item() > 0.5:  # <- here
            y = x / scale
            z = y + 1
        else:
            y = x * 3
            z = y - 1
        return y + z


def build():
    return Faulty(), (torch.randn(3, 4),)
