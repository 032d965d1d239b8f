"""An assert on values."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/assert-on-data"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, **options):
        assert x.max() <= 1  # <- here
        return x * 2


def build():
    return Faulty(), (torch.rand(3, 4),)
