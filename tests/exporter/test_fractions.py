"""Integer tensors beside fractions that follow from sizes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import onnxsmith


class Weighted(nn.Module):
    """As SAM weighs its single mask by the number of points."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        numbers, fraction = torch.tensor([[1000, 0, -7]]), x.shape[0] - 2.5
        made = {
            "times": lambda: numbers * fraction,
            "by": lambda: numbers / fraction,
            "plus": lambda: numbers + fraction,
            "minus": lambda: fraction - numbers,
        }[self.how]()
        return x + made


@pytest.mark.parametrize("how", ["times", "by", "plus", "minus"])
def test_an_integer_tensor_and_a_fraction_of_a_size(how: str) -> None:
    result = onnxsmith.export(Weighted(how), (torch.rand(4, 3),), dynamic="x:0=points", strategy="torch-export")
    assert result.ok, result.report.headline
