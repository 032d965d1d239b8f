"""Views of dynamic sizes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import onnxsmith


class Windows(nn.Module):
    """Padded to whole windows, cut into them, and put together again."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, height, width, channels = x.shape
        x = nn.functional.pad(x, (0, 0, 0, (4 - width % 4) % 4, 0, (4 - height % 4) % 4))
        _, high, wide, _ = x.shape
        cut = x.view(batch, high // 4, 4, wide // 4, 4, channels).transpose(2, 3).contiguous()
        windows = cut.view(-1, 16, channels).softmax(1).view(-1, high // 4, wide // 4, 4, 4, channels)
        whole = windows.transpose(2, 3).contiguous().view(-1, high, wide, channels)
        return whole[:, :height, :width].contiguous().view(batch, height * width, channels)


def test_windows_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def dimension_by_dimension(*_: object) -> None:
        raise AssertionError("the slow way")

    monkeypatch.setattr(torch._refs, "_reshape_view_helper_core_alg", dimension_by_dimension)
    args, axes = (torch.randn(2, 10, 13, 3),), "x:0=batch,1=height,2=width"
    assert onnxsmith.export(Windows(), args, dynamic=axes, strategy="torch-export").ok
