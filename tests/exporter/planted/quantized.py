"""A module that torch has quantized."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/quantized-module"
DYNAMIC = "input:0=batch"
OPSET = None


def build():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    return torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8), (torch.rand(3, 4),)


def mended():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU()), (torch.rand(3, 4),)
