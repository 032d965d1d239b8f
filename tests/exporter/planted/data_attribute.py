"""An input that becomes a constant by way of .data."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/data-attribute"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, scale, **options):
        peak = scale.data.abs().max()  # <- here
        return x * scale / peak


def build():
    return Faulty(), (torch.rand(3, 4), torch.rand(4))
