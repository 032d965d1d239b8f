"""numpy in an autograd.Function."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

EXPECTED = "forward/numpy"
DYNAMIC = "x:0=batch"
OPSET = None


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = np.power(x.detach().numpy(), 3)  # <- here
        return torch.from_numpy(y)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Faulty(nn.Module):
    def forward(self, x):
        return Cube.apply(x) + 1


def build():
    return Faulty(), (torch.rand(3, 4),)
