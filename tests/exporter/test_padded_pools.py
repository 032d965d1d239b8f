"""A Pad before a MaxPool is not the pool's own padding."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import onnxsmith


class PadsThenPools(nn.Module):
    """Of numbers below zero: a zero beside them is the largest of a window."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = nn.functional.pad(x.sigmoid() - 1, (1, 2, 0, 1))
        return nn.functional.max_pool2d(padded, 3, 2)


@pytest.mark.parametrize("strategy", ["torch-export", "torchscript"])
@pytest.mark.parametrize("simplify", [True, False])
def test_zeros_before_a_pool_are_zeros(strategy: str, simplify: bool) -> None:
    args, axes = (torch.randn(1, 2, 6, 7),), "x:0=batch,2=height,3=width"
    assert onnxsmith.export(PadsThenPools(), args, dynamic=axes, strategy=strategy, simplify=simplify).ok
