"""Noise that forward draws."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/random"
DYNAMIC = "x:0=batch"
DYNAMIC_AFTER = "x:0=batch;noise:0=batch"  # noise of three rows would fit a batch of three only
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x) + 0.1 * torch.randn_like(x)  # <- here


def build():
    return Faulty(), (torch.rand(3, 4),)


def after(net, args):
    return (*args, torch.randn_like(args[0]))
