"""A buffer that counts."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/state"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1  # <- here
        return x * self.count


def build():
    return Faulty(), (torch.rand(3, 4),)


def after(net, args):
    return (*args, net.count)
