"""An input that is written to."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/input-written"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        x[:, 0] = 0  # <- here
        return x * 2


def build():
    return Faulty(), (torch.rand(3, 4),)
