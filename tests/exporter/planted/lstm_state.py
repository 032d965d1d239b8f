"""The first state of an LSTM, made for the example's batch."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "forward/literal-size"
DYNAMIC = "x:0=time,1=batch"
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5)

    def forward(self, x):
        h = torch.zeros(1, 3, 5)  # <- here
        c = torch.zeros(1, 3, 5)
        return self.lstm(x, (h, c))[0]


def build():
    return Faulty(), (torch.rand(7, 3, 4),)
