"""A value formatted into a text."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/python-value"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        self.note = f"mean {x.mean():.3f}"  # <- here
        return x * 2


def build():
    return Faulty(), (torch.rand(3, 4),)


class Mended(nn.Module):
    def forward(self, x):
        return x * 2


def mended():
    return Mended(), (torch.rand(3, 4),)
