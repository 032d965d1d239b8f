"""Two operators without a translation."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/no-translation"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        y = torch.kthvalue(x, 2, dim=1).values  # <- here
        return y + torch.special.bessel_j0(x).sum(1)


def build():
    return Faulty(), (torch.rand(3, 4),)


class Mended(nn.Module):
    def forward(self, x):
        k, dim = 2, 1
        y = x.sort(dim).values.select(dim, k - 1)
        return y + x.cos().sum(1)


def mended():
    return Mended(), (torch.rand(3, 4),)
