"""A linear layer in bfloat16: `Gemm(13)` has no kernel for it."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "runtime/no-kernel"
DYNAMIC = ""
OPSET = None


def build():
    return nn.Linear(4, 4).bfloat16(), (torch.rand(3, 4).bfloat16(),)


def mended():
    net, (x,) = build()
    return net.float(), (x.float(),)
