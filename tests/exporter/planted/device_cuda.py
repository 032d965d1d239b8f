"""A device in forward."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/device"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        bias = torch.ones(4, device="cuda")  # <- here
        return x.cuda() + bias


def build():
    return Faulty(), (torch.rand(3, 4),)
