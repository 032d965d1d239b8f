"""A cache as an argument, of a class that keeps its tensors in slots."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/object-input"
DYNAMIC = "x:0=batch"
OPSET = None


class Cache:
    __slots__ = ("keys",)

    def __init__(self, keys):
        self.keys = keys


class Faulty(nn.Module):
    def forward(self, x, cache):
        return x @ cache.keys


def build():
    return Faulty(), (torch.rand(3, 4), Cache(torch.rand(4, 4)))


class Flat(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, keys):
        held = Cache.__new__(Cache)
        held.keys = keys
        return self.net(x, held)


def mended():
    return Flat(Faulty()), (torch.rand(3, 4), torch.rand(4, 4))
