"""As many turns as an input says."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/loop-on-data"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, n, **options):
        y = x
        for i in range(int(n)):  # <- here
            y = y * 0.5 + i
        return y


def build():
    return Faulty(), (
        torch.rand(3, 4),
        torch.tensor(3),
    )
