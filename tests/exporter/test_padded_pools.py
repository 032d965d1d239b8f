"""A Pad before a MaxPool is not the pool's own padding."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import onnxsmith
from tests.exports import assert_follows


class PadsThenPools(nn.Module):
    """Of numbers below zero: a zero beside them is the largest of a window."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = nn.functional.pad(x.sigmoid() - 1, (1, 2, 0, 1))
        return nn.functional.max_pool2d(padded, 3, 2)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("strategy", ["torch-export", "torchscript"])
@pytest.mark.parametrize("simplify", [True, False])
def test_zeros_before_a_pool_are_zeros(strategy: str, simplify: bool) -> None:
    args = [(torch.randn(sizes),) for sizes in ((1, 2, 6, 7), (1, 2, 3, 2), (2, 2, 7, 6), (3, 2, 9, 9))]
    axes = "x:0=batch,2=height,3=width"
    result = onnxsmith.export(PadsThenPools(), args[0], dynamic=axes, strategy=strategy, simplify=simplify)
    assert result.ok
    assert result.model is not None
    assert_follows(result.model, PadsThenPools(), *args)
