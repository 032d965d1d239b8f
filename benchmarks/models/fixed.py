"""Networks whose static exports hold sizes in constants: resizing to sizes, sequences first, grids, states."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class UNet(nn.Module):
    """Two steps down and two up: each step up resizes to the size of what it is joined with."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (_block(*channels) for channels in ((3, 8), (8, 16), (16, 32)))
        self.back, self.last = _block(48, 16), _block(24, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.first(x)
        b = self.second(functional.max_pool2d(a, 2))
        c = self.third(functional.max_pool2d(b, 2))
        c = functional.interpolate(c, size=b.shape[2:], mode="bilinear", align_corners=False)
        b = self.back(torch.cat([c, b], 1))
        b = functional.interpolate(b, size=a.shape[2:], mode="nearest")
        return self.head(self.last(torch.cat([b, a], 1)))


def _block(channels: int, wide: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, wide, 3, padding=1), nn.GroupNorm(4, wide), nn.ReLU())


class Attention(nn.Module):
    """Attention over a batch of 12 steps of 16 numbers with a causal mask and a summary token, steps first inside."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=False, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        x = torch.cat([self.token.expand(batch, -1, -1), x], 1).transpose(0, 1)
        mask = torch.triu(torch.full((x.shape[0], x.shape[0]), float("-inf")), 1).T
        return self.layers(x, mask=mask, is_causal=False)[0]


class Sampler(nn.Module):
    """Moves a picture along a predicted field of offsets, and normalises the result in groups."""

    def __init__(self) -> None:
        super().__init__()
        self.field = nn.Conv2d(4, 2, 3, padding=1)
        self.after = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.PixelShuffle(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        unit = torch.eye(2, 3).unsqueeze(0).repeat(batch, 1, 1)
        grid = functional.affine_grid(unit, [batch, 4, 16, 16], align_corners=False)
        moved = grid + 0.1 * torch.tanh(self.field(x)).permute(0, 2, 3, 1)
        return self.after(functional.grid_sample(x, moved, align_corners=False))


class Stateful(nn.Module):
    """A recurrent layer with a state of zeros, and the step of each row at which its largest number stands."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(8, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(1, x.shape[0], 16)
        hidden, _ = self.cell(x, (state, state))
        best = x[:, :, 0].argmax(1)
        return hidden[torch.arange(x.shape[0]), best]
