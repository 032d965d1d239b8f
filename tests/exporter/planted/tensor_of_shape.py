"""numpy.prod of a shape."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

EXPECTED = "forward/size-as-number"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def forward(self, x):
        n = int(np.prod(x.shape))  # <- here
        return x.reshape(n) / math.sqrt(4)


def build():
    return Faulty(), (torch.rand(3, 4),)
