"""Layers of a stack are told apart, although one operation of PyTorch computes them all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from tests.exports import compared_once


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(12, 24, 3, batch_first=True)
        self.head = nn.Linear(24, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, (hidden, _) = self.lstm(x)
        result: torch.Tensor = self.head(hidden[-1])
        return result


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Stack().eval(), (torch.randn(2, 7, 12),)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stack") / "stack.onnx"
    module, args = build()
    with compared_once():
        assert onnxsmith.export(module, args, output=path).ok
    return path


def test_every_layer_is_paired_and_none_is_named(file: Path) -> None:
    result = onnxsmith.compare(build(), file, per_layer=True)
    assert result.ok
    assert result.report.part(Layers).share > 0.9


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_layer_with_another_weight_is_named(file: Path, layer: int) -> None:
    model = ir.load(file)
    node = [one for one in model.graph if one.op_type == "LSTM"][layer]
    held = node.inputs[1]
    assert held is not None
    assert held.const_value is not None
    changed = held.const_value.numpy().copy()
    changed[0, 5, :6] += np.float32(2)
    held.const_value = ir.tensor(changed, name=held.name)
    found = onnxsmith.compare(build(), model, per_layer=True).report.part(Layers)
    assert found.layer(found.culprits[0]).steps[0] == node.name
