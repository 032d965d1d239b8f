"""A module that torch has quantized."""

from __future__ import annotations

import warnings

import torch
from torch import nn

EXPECTED = "export/quantized-module"
DYNAMIC = "input:0=batch"
OPSET = None


def build():
    with warnings.catch_warnings(action="ignore"):  # torch is about to drop it; models that have it are there
        return nn.Sequential(torch.ao.nn.quantized.dynamic.Linear(4, 4), nn.ReLU()), (torch.rand(3, 4),)


def mended():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU()), (torch.rand(3, 4),)
