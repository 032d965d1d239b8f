"""A convolution in bfloat16."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "runtime/no-kernel"
DYNAMIC = ""
OPSET = None


def build():
    return nn.Conv2d(1, 2, 3).bfloat16(), (torch.rand(1, 1, 8, 8).bfloat16(),)


def mended():
    net, (x,) = build()
    return net.float(), (x.float(),)
