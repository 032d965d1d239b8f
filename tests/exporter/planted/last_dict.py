"""A dictionary as the last argument, and a branch on it."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/branch-on-data"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x, options):
        if options["shift"].sum() > 1:  # <- here
            x = x + options["shift"]
        return x * 2


def build():
    return Faulty(), (
        torch.rand(3, 4),
        {"shift": torch.rand(4)},
    )
