"""An operator of PyTorch that ONNX cannot express."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/no-translation"
DYNAMIC = ""
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        values = torch.linalg.eigvals(x)  # <- here
        return values.real.sum(-1)


def build():
    return Faulty(), (torch.rand(3, 4, 4),)


class Mended(nn.Module):
    def forward(self, x):
        return x.diagonal(dim1=-2, dim2=-1).sum(-1)


def mended():
    return Mended(), (torch.rand(3, 4, 4),)
