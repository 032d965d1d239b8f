"""numpy on the way."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

EXPECTED = "forward/numpy"
DYNAMIC = "x:0=batch"
OPSET = None


class Faulty(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x).detach().numpy()  # <- here
        y = np.tanh(y) + np.clip(y, 0, 1)
        return torch.from_numpy(y) * 2


def build():
    return Faulty(), (torch.rand(3, 4),)
