"""Attention whose causal flag is a condition on sizes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

import onnxsmith


class Decoder(nn.Module):
    def __init__(self, *, imported: bool) -> None:
        super().__init__()
        self.imported = imported

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        attend = scaled_dot_product_attention if self.imported else F.scaled_dot_product_attention
        return attend(x, memory, memory, is_causal=x.shape[-2] > 1, scale=0.5)


@pytest.mark.parametrize("imported", [False, True])
def test_causal_from_the_second_place_on(imported: bool) -> None:
    example = (torch.rand(2, 3, 5, 4), torch.rand(2, 3, 7, 4))
    axes = {"x": {2: "n"}, "memory": {2: "m"}}
    result = onnxsmith.export(Decoder(imported=imported), example, dynamic=axes, strategy="torch-export")
    assert result.ok, result.report.problems
    assert F.scaled_dot_product_attention is scaled_dot_product_attention
