"""Several at once, in functions of the file, too."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/python-value"
DYNAMIC = "x:0=batch"
OPSET = None


def scaled(x):
    peak = x.max().item()  # <- here
    if peak > 0.5:
        x = x / peak
    return x


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, **options):
        x = scaled(x)
        return self.fc(x).view(int(x.shape[0]), -1)


def build():
    return Faulty(), (torch.rand(3, 4),)
