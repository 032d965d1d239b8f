"""A loop over the batch that appends to a list."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/loop-over-axis"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, **options):
        out = []
        for i in range(x.shape[0]):  # <- here
            out.append(self.fc(x[i]) * x[i].sum())  # noqa: PERF401 — as users write it
        return torch.stack(out)


def build():
    return Faulty(), (torch.rand(3, 4),)
