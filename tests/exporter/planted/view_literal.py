"""A view with the example's batch written into it."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/literal-size"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        y = torch.tanh(x)
        return y.view(3, -1) + 1  # <- here


def build():
    return Faulty(), (torch.rand(3, 4),)
