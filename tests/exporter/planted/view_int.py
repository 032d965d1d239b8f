"""A view with a size made an int."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/size-as-number"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, **options):
        return x.view(int(x.shape[0]), 2, -1) * 2  # <- here


def build():
    return Faulty(), (torch.rand(3, 4),)
