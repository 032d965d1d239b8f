"""An operator of torch.library that says neither its ONNX form nor its shapes."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/no-translation"
DYNAMIC = "x:0=batch"
OPSET = None


@torch.library.custom_op("planted::folded", mutates_args=())
def folded(x: torch.Tensor, parts: int) -> torch.Tensor:
    return x.unflatten(1, (parts, -1)).sum(1)


class Faulty(nn.Module):
    def forward(self, x):
        return torch.relu(folded(x - 0.5, 2))  # <- here


def build():
    return Faulty(), (torch.rand(3, 4),)
