"""A module that torch has quantized."""

from __future__ import annotations

import warnings

import torch
from torch import nn

EXPECTED = "export/quantized-module"
DYNAMIC = "input:0=batch"
OPSET = None


class Recurrent(nn.Module):
    """A quantized LSTM: its cells are computed by kernels of PyTorch only."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.ao.nn.quantized.dynamic.LSTM(4, 4)

    def forward(self, input):  # noqa: A002 — the name is asked for by DYNAMIC
        return self.lstm(input[None])[0][0]


def build():
    with warnings.catch_warnings(action="ignore"):  # torch is about to drop it; models that have it are there
        return Recurrent(), (torch.rand(3, 4),)


class Float(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4)

    def forward(self, input):  # noqa: A002 — the name is asked for by DYNAMIC
        return self.lstm(input[None])[0][0]


def mended():
    return Float(), (torch.rand(3, 4),)
