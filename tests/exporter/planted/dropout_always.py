"""A dropout that is never off."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/random"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return nn.functional.dropout(self.fc(x), p=0.3)  # <- here


def build():
    return Faulty(), (torch.rand(3, 4),)
