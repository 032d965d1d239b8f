"""An operator of torch.library that has no ONNX form, twice."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/no-translation"
DYNAMIC = "x:0=batch"
OPSET = None


@torch.library.custom_op("planted::damped", mutates_args=())
def damped(x: torch.Tensor, by: float) -> torch.Tensor:
    return x / (1 + by * x.abs())


@damped.register_fake
def _(x: torch.Tensor, by: float) -> torch.Tensor:
    return torch.empty_like(x)


class Faulty(nn.Module):
    def forward(self, x):
        y = torch.ops.planted.damped(x, 0.5)  # <- here
        return y + damped(x * 2, 2.0).sum(1, keepdim=True)  # <- here


def build():
    return Faulty(), (torch.rand(3, 4),)
