"""Integer tensors beside fractions that follow from sizes."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.runtimes.base import Options
from onnxsmith.runtimes.onnxruntime import OnnxRuntime


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


class Cut(nn.Module):
    def __init__(self, wanted: Callable[[int], int]) -> None:
        super().__init__()
        self.wanted = wanted

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : self.wanted(x.shape[1])].sum(1)


ROUNDED: dict[str, Callable[[int], int]] = {
    "floor": lambda n: math.floor(n * 0.29),
    "there-and-back": lambda n: math.floor(24 / n * n),
    "half": lambda n: round(n * 0.5),
    "ceil": lambda n: math.ceil(n / 3) + math.floor(n / 7),
    "root": lambda n: math.floor(n**0.5),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_fractions_of_sizes_are_those_of_python(name: str) -> None:
    module = Cut(ROUNDED[name])
    result = onnxsmith.export(module, (torch.rand(1, 50),), dynamic="x:1=n", strategy="torch-export", verify=False)
    with OnnxRuntime().prepare(result.model, Options()) as session:
        for n in range(1, 300):
            x = torch.ones(1, n)
            found = session.run({"x": x.numpy()})
            assert next(iter(found.values())).item() == module(x).item(), n


class Spaced(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = x.shape[1]
        return torch.arange(0, 1, 1 / n) + x, x > n / 100, x.clamp(max=n / 64), (x * 9).long() >= n / 7


def test_numbers_beside_tensors() -> None:
    result = onnxsmith.export(Spaced(), (torch.rand(1, 50),), dynamic="x:1=n", strategy="torch-export")
    assert result.ok, result.report.problems
