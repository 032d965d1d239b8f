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


class Spectrum(nn.Module):
    """A front end of windows by torch.stft, which pads by way of a dimension of 1, and a layer over the bands."""

    def __init__(self) -> None:
        super().__init__()
        self.window = nn.Buffer(torch.hann_window(64))
        self.layer = nn.Linear(33, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.stft(x, 64, 32, window=self.window, return_complex=False, pad_mode="constant")
        return self.layer(found.square().sum(-1).transpose(1, 2))


class Streaming(nn.Module):
    """A recurrent layer that takes back its state, which has the batch on axis 1, and a state that is viewed to it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.begin = nn.GRU(8, 16, batch_first=True), nn.Linear(4, 16)

    def forward(self, x: torch.Tensor, z: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, after = self.cell(x, h + self.begin(z).view(1, z.shape[0], 16))
        return y, after


class Last(nn.Module):
    """The step of each row at its length, by row numbers, and a mask by the lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.layer = nn.Embedding(30, 8), nn.Linear(8, 6)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = torch.tanh(self.layer(self.words(words)))
        mask = torch.arange(words.shape[1])[None, :] < lengths[:, None]
        mean = (hidden * mask[..., None]).sum(1) / lengths[:, None]
        return hidden[torch.arange(words.shape[0]), lengths - 1], mean


class Written(nn.Module):
    """Writes parts of its input into zeros, in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(9, 9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros(x.shape[0], 6, 9)
        y[:, :2, 1:] = x[:, :2, :-1]
        y[:, 2:4] = torch.relu(x[:, 2:4])
        return self.layer(y)


class Heads(nn.Module):
    """Attention whose batch joins the heads, with learned positions and a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.randn(1, 10, 16))
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.places
        mask = torch.full((10, 10), float("-inf")).triu(1)
        return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
