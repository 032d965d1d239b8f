"""Sizes that are divided may be differences, and negative."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification


class PadsToFit(nn.Module):
    """What a U-Net does where the size is odd: what comes up from below is cut or padded, half on each side."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(4, 1, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(self.down(x))
        rows, columns = x.size(2) - y.size(2), x.size(3) - y.size(3)
        return x + functional.pad(y, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (3 - x.shape[0]) // 2 + (3 - x.shape[0]) % 2


@pytest.mark.parametrize("size", [8, 9])
def test_a_difference_of_sizes_is_halved_as_python_does(size: int) -> None:
    result = onnxsmith.export(PadsToFit(), (torch.rand(1, 1, size, 8),), dynamic="x:2=height,3=width")
    assert result.ok, result.report.problems
    sizes = result.report.part(Verification).sizes
    assert sizes is not None
    assert {one % 2 for one in sizes["height"]} == {0, 1}


def test_a_negative_quotient() -> None:
    assert onnxsmith.export(Halves(), (torch.rand(8, 2),), dynamic="x:0=n").ok
