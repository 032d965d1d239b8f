"""An input that a method writes to."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/input-written"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        x.clamp_(0, 0.5)  # <- here
        return x + 1


def build():
    return Faulty(), (torch.rand(3, 4),)
