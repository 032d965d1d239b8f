"""A cache as an argument, of a class whose objects can be called: export takes objects apart, but no functions."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/object-input"
DYNAMIC = "x:0=batch"
OPSET = None


class Cache:
    def __init__(self, keys):
        self.keys = keys

    def __call__(self, x):
        return x @ self.keys


class Faulty(nn.Module):
    def forward(self, x, cache):
        return cache(x)


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
