"""flex_attention: plain, with a score function that reads a buffer, and with a block mask."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import onnxsmith


class Plain(nn.Module):
    def forward(self, q: torch.Tensor) -> Any:
        return flex_attention(q, q, q)


class Slopes(nn.Module):
    """Attention with linear biases (O. Press et al., 2022)."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("slopes", torch.tensor([0.5, 0.25]))

    def forward(self, q: torch.Tensor) -> Any:
        slopes: Any = self.slopes
        return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + slopes[h] * (j - i))


class Causal(nn.Module):
    def forward(self, q: torch.Tensor) -> Any:
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 16, 16, device="cpu")
        return flex_attention(q, q, q, block_mask=mask)


@pytest.mark.parametrize("module", [Plain(), Slopes(), Causal()])
def test_exported_with_a_dynamic_batch(module: nn.Module) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch advises to compile it
        result = onnxsmith.export(module.eval(), (torch.randn(2, 2, 16, 8),), dynamic="q:0=n")
    assert result.report.verdict == "done"
    assert "verified on" in result.report.headline
