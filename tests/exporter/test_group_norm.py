"""A GroupNorm is exact where the mean is far above the spread, at every opset."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import onnxsmith
from onnxsmith.runtimes.base import get


@pytest.mark.parametrize("opset", [18, 23])
def test_a_large_mean_does_not_cancel(opset: int) -> None:
    module = torch.nn.Sequential(torch.nn.GroupNorm(4, 16)).eval()
    result = onnxsmith.export(module, (torch.rand(2, 16, 8, 8),), opset=opset)
    x = torch.randn(2, 16, 8, 8) + 100
    with get("onnxruntime").prepare(result.model) as session:
        (found,) = session.run({"input": x.numpy()}).values()
    exact = torch.nn.functional.group_norm(x.double(), 4).numpy()
    assert np.abs(np.asarray(found) - exact).max() < 1e-3
