"""An opset from before LayerNormalization and GridSample."""

from __future__ import annotations

import torch
from torch import nn

EXPECTED = "export/opset"
DYNAMIC = ""
OPSET = 12


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        grid = torch.stack([x[..., :2], x[..., 2:]], -2)
        return nn.functional.grid_sample(self.norm(x)[:, None], grid, align_corners=False)


def build():
    return Faulty(), (torch.rand(2, 3, 4),)


def mended():
    return build()


OPSET_AFTER = 18
