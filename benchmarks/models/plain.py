"""Networks of torch alone, for what transformers' do not have: recurrence, graphs, scattering, branches, loops."""

from __future__ import annotations

import torch
from torch import nn


class Recurrent(nn.Module):
    """Two layers of a recurrent kind, in both directions, over batch x steps x 16 floats."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.cell = kind(16, 32, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.cell(x)
        return self.head(hidden[:, -1])


class Graph(nn.Module):
    """Messages along edges, three times: gather, two layers, add up at the target, a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16)) for _ in range(3))
        self.gate = nn.ModuleList(nn.Linear(32, 16) for _ in range(3))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for message, gate in zip(self.message, self.gate, strict=True):
            sent = message(torch.cat([x[edges[0]], x[edges[1]]], dim=-1))
            heard = torch.zeros_like(x).index_add(0, edges[1], sent)
            weight = torch.sigmoid(gate(torch.cat([x, heard], dim=-1)))
            x = weight * x + (1 - weight) * heard
        return x


class Separable(nn.Module):
    """Padding, strided and transposed convolutions, batch and instance norms, resizing: an image in, an image out."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(3, 16, 3, bias=False),
            nn.BatchNorm2d(16),
            nn.PReLU(16),
            nn.Conv2d(16, 32, 3, stride=2, padding=1, groups=16),
            nn.InstanceNorm2d(32, affine=True),
            nn.GELU(),
        )
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.shuffle = nn.Sequential(nn.Conv2d(16, 12, 1), nn.PixelShuffle(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.interpolate(self.shuffle(self.up(self.down(x))), scale_factor=0.5, mode="bilinear")
        return torch.clamp(x + y, 0.0, 1.0)


class Branch(nn.Module):
    """One of two networks, by what the input holds: `torch.cond`, which becomes If."""

    def __init__(self) -> None:
        super().__init__()
        self.large = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16))
        self.small = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: self.large(y), lambda y: self.small(y), (x,))


@torch.jit.script
def _steps(x: torch.Tensor, weight: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    for step in range(int(count)):
        x = torch.tanh(x @ weight) if step % 2 == 0 else torch.relu(x @ weight.t()) + x
    return x


class Loop(nn.Module):
    """As many steps as an input says, scripted: Loop with an If inside."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16) / 4)

    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        return _steps(x, self.weight, count)
