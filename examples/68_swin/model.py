"""A small Swin transformer: windows, shifted windows, merged patches. Random weights."""

import torch
from torch import nn

WINDOW = 4


def windows(x: torch.Tensor) -> torch.Tensor:
    """[n, h, w, c] to [n * windows, WINDOW * WINDOW, c]."""
    n, h, w, c = x.shape
    x = x.view(n, h // WINDOW, WINDOW, w // WINDOW, WINDOW, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, WINDOW * WINDOW, c)


def joined(x: torch.Tensor, n: int, h: int, w: int) -> torch.Tensor:
    """Undoes `windows`."""
    x = x.view(n, h // WINDOW, w // WINDOW, WINDOW, WINDOW, -1)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, -1)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, shift: int, side: int) -> None:
        super().__init__()
        self.heads, self.shift = heads, shift
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.bias = nn.Parameter(torch.randn(heads, WINDOW**2, WINDOW**2) / 10)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.register_buffer("mask", self._mask(side))

    def _mask(self, side: int) -> torch.Tensor:
        """Which pixels of a shifted window were neighbours: [windows, 1, WINDOW², WINDOW²]."""
        region = torch.zeros(1, side, side, 1)
        parts = (slice(0, -WINDOW), slice(-WINDOW, -self.shift or None), slice(-self.shift, None))
        for number, (rows, columns) in enumerate((r, c) for r in parts for c in parts):
            region[:, rows, columns] = number if self.shift else 0
        flat = windows(region).squeeze(-1)
        return torch.where(flat[:, None] == flat[:, :, None], 0.0, -100.0).unsqueeze(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, h, w, c = x.shape
        y = torch.roll(self.norm1(x), (-self.shift, -self.shift), (1, 2))
        q, k, v = self.qkv(windows(y)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5 + self.bias
        scores = scores.unflatten(0, (-1, self.mask.shape[0])) + self.mask
        y = scores.flatten(0, 1).softmax(-1) @ v
        y = joined(self.out(y.transpose(1, 2).flatten(2)), n, h, w)
        x = x + torch.roll(y, (self.shift, self.shift), (1, 2))
        return x + self.mlp(self.norm2(x))


class Swin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 2, stride=2)
        self.stage1 = nn.Sequential(Block(16, 2, 0, 16), Block(16, 2, WINDOW // 2, 16))
        self.merge = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 32, bias=False))
        self.stage2 = nn.Sequential(Block(32, 4, 0, 8), Block(32, 4, WINDOW // 2, 8))
        self.head = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.stage1(self.patches(image).permute(0, 2, 3, 1))
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.head(self.stage2(self.merge(x)).mean((1, 2)))


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Swin(), (torch.rand(2, 3, 32, 32),)
