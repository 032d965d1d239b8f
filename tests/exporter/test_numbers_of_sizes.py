"""Numbers that Python computes from sizes in a traced module."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import log2

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.runtimes.base import Options
from onnxsmith.runtimes.onnxruntime import OnnxRuntime


class Cut(nn.Module):
    def __init__(self, wanted: Callable[[int], int]) -> None:
        super().__init__()
        self.wanted = wanted

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.new_ones(self.wanted(x.shape[1])).sum() + x.sum()


WANTED: dict[str, Callable[[int], int]] = {
    "log2": lambda n: 2 ** math.ceil(math.log2(n)),
    "imported": lambda n: math.floor(log2(n)) + 1,
    "quotient": lambda n: math.floor(math.log(n) / math.log(2)) + math.ceil(math.log(n, 2)),
    "digits": lambda n: math.floor(math.log10(n)) + 1,
    "bits": lambda n: 1 << (n - 1).bit_length(),
    "root": lambda n: math.floor(math.sqrt(n)) + math.isqrt(n),
    "divmod": lambda n: sum(divmod(n, 3)),
    "numpy": lambda n: math.floor(np.ceil(n / 8) + np.sqrt(n)),
}


@pytest.mark.parametrize("name", WANTED)
def test_numbers_follow_the_size(name: str) -> None:
    module = Cut(WANTED[name])
    result = onnxsmith.export(module, (torch.rand(1, 50),), dynamic="x:1=n", strategy="torch-export", verify=False)
    with OnnxRuntime().prepare(result.model, Options()) as session:
        for n in (*range(1, 130), *(2**k + d for k in range(8, 14) for d in (-1, 0, 1)), 999, 1000):
            x = torch.zeros(1, n)
            found = session.run({"x": x.numpy()})
            assert next(iter(found.values())).item() == module(x).item(), n


def test_the_functions_are_those_of_python_afterwards() -> None:
    assert (math.log2(8), log2(8), math.isqrt(10)) == (3.0, 3.0, 3)
    assert type(math.sqrt) is type(math.floor)
    assert not hasattr(torch.SymFloat, "rint")
