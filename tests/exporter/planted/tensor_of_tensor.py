"""torch.tensor of tensors."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/copied-tensor"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        s = torch.tensor([x.min(), x.max()])  # <- here
        return x * s.sum()


def build():
    return Faulty(), (torch.rand(3, 4),)
