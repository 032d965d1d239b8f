"""Infinities in exported models."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import onnxsmith


class Bounded(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return 1 / x.clamp_min(1e-12), x.clamp(max=2.0), x.clamp(min=torch.tensor(1.0)), 1 / x.clamp_max(-2)


def test_one_bound_leaves_infinities() -> None:
    torch.manual_seed(0)
    result = onnxsmith.export(Bounded(), (torch.randn(3, 4),))
    assert result.model is not None
    x = torch.tensor([[torch.inf, -torch.inf, torch.nan, 1.0]] * 3)
    found = onnxsmith.run(result.model, {"x": x.numpy()}).outputs
    for value, wanted in zip(found.values(), Bounded()(x), strict=True):
        np.testing.assert_array_equal(value, wanted)
