"""A library that orders products by plain numbers, traced with symbolic sizes."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch

import onnxsmith


class Contracted(torch.nn.Module):
    """Asks for sizes as opt_einsum does, which need not be installed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        asked: Any = sys.modules["opt_einsum.parser"]
        rows, columns = (int(size) for size in asked.get_shape(x))
        first, second = (x.t(), x) if rows > columns else (x, x.t())
        return (first @ second).sum()


def test_the_order_is_that_of_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    parser: Any = ModuleType("opt_einsum.parser")
    parser.get_shape = lambda x: tuple(x.shape)
    monkeypatch.setitem(sys.modules, "opt_einsum.parser", parser)
    result = onnxsmith.export(Contracted(), (torch.rand(6, 4),), dynamic="x:0=n", strategy="torch-export", verify=False)
    assert result.model.graph.inputs[0].shape[0] == "n"
