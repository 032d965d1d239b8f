"""What TorchDynamo follows and the first way does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture


class WithNumpy(nn.Module):
    """Half of it is computed by numpy, with a function that torch calls otherwise and a limit that is a number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        array = x.numpy()
        y = np.cumsum(array, axis=1) * 2 + np.maximum(array, 0)
        return torch.from_numpy(y) + x


@pytest.mark.parametrize("strategy", ["torch-strict", "torch-recomposed", None])
def test_numpy_on_tensors_is_followed(strategy: str | None, tmp_path: Path) -> None:
    result = onnxsmith.export(
        WithNumpy(), (torch.randn(3, 4),), output=tmp_path / "m.onnx", dynamic="x:0=batch", strategy=strategy
    )
    assert result.ok, result.report.problems
    (port,) = result.report.part(Capture).inputs
    assert port.shape == ("batch", 4)
