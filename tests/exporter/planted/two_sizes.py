"""One name for two axes of different sizes."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/dimension-conflict"
DYNAMIC = "x:0=n;y:0=n"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, y):
        return x.sum(1), y.sum(1)


def build():
    return Faulty(), (torch.rand(3, 4), torch.rand(2, 4))


def mended():
    return build()


DYNAMIC_AFTER = "x:0=n;y:0=m"
