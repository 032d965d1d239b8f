"""Python numbers in a model of float64: as exact as PyTorch has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import onnxsmith


class Scaled(torch.nn.Module):
    """Numbers that float32 does not hold, as operators take them."""

    def forward(self, x: torch.Tensor) -> Any:
        filled = torch.full((4,), 0.1, dtype=x.dtype)
        chosen = torch.where(x > 0.5, x, 0.1)
        return x * 0.1, x / 0.7 + 0.3, x.clamp(0.1, 0.3), chosen, filled + x, torch.full((4,), 0.1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_python_numbers_are_as_exact_as_the_tensor(dtype: torch.dtype) -> None:
    x = torch.linspace(0, 1, 4, dtype=dtype)
    module = Scaled()
    model = onnxsmith.export(module, (x,), strategy="torch-export").model
    found = onnxsmith.run(model, inputs={model.graph.inputs[0].name: x.numpy()}).outputs
    for wanted, got in zip(module(x), found.values(), strict=True):
        np.testing.assert_array_equal(wanted.numpy(), got)
        assert wanted.numpy().dtype == got.dtype
