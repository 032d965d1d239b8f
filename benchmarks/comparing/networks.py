"""Small networks of several kinds, with weights as training leaves them: no layer without effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

Built = tuple[nn.Module, tuple[Any, ...]]


def _settled(module: nn.Module) -> nn.Module:
    """Statistics and scales as if it had been trained."""
    for one in module.modules():
        if isinstance(one, nn.BatchNorm2d):
            one.running_mean.normal_(0, 0.3)
            one.running_var.uniform_(0.3, 1.5)
            nn.init.uniform_(one.weight, 0.5, 1.5)
            nn.init.normal_(one.bias, 0, 0.2)
        elif isinstance(one, nn.LayerNorm):
            nn.init.uniform_(one.weight, 0.5, 1.5)
            nn.init.normal_(one.bias, 0, 0.2)
    return module.eval()


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.after = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x + self.after(self.two(F.leaky_relu(self.norm(self.one(x)), 0.1))), 0.1)


class Cnn(nn.Module):
    """Residual blocks, a reflected border, pools with borders, a scale by the size."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2)
        self.blocks = nn.Sequential(
            Residual(16), nn.MaxPool2d(3, 2, 1), Residual(16), nn.AvgPool2d(3, 2, 1), Residual(16)
        )
        self.hidden, self.head = nn.Linear(16, 16), nn.Linear(16, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.blocks(F.relu(self.stem(F.pad(image, (1, 1, 1, 1), mode="reflect"))))
        x = torch.round(x.mean((2, 3)) * 16) / 16.0
        return self.head(F.gelu(self.hidden(x)) * 1.7)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, gate: bool) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.heads, self.gate = heads, gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        shape = (batch, time, self.heads, width // self.heads)
        y = self.before(x)
        query, key, value = (one(y).view(shape).transpose(1, 2) for one in (self.query, self.key, self.value))
        weights = torch.softmax(query @ key.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        x = x + self.out((weights @ value).transpose(1, 2).reshape(batch, time, width))
        z = self.up(self.between(x))
        return x + self.down(F.silu(z) if self.gate else F.gelu(z))


class Transformer(nn.Module):
    """An encoder of words, with half precision in the middle."""

    def __init__(self, depth: int = 3, gate: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(100, 48)
        self.places = nn.Embedding(32, 48)
        self.layers = nn.ModuleList(Layer(48, 4, gate) for _ in range(depth))
        self.last, self.head = nn.LayerNorm(48), nn.Linear(48, 7)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number == 0:
                x = x.half().float()
        return self.head(self.last(x))


class Vision(nn.Module):
    """A transformer over patches."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 48, 8, 8)
        self.layers = nn.ModuleList(Layer(48, 4, False) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1) * 0.8)


class Recurrent(nn.Module):
    """Two LSTMs over the frames of a signal, with a convolution in front."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Conv1d(1, 24, 5, stride=2, padding=2)
        self.first = nn.LSTM(24, 32, batch_first=True)
        self.second = nn.LSTM(32, 16, batch_first=True, bidirectional=True)
        self.norm, self.square, self.head = nn.LayerNorm(32), nn.Linear(32, 32), nn.Linear(32, 5)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        x = F.leaky_relu(self.front(signal) * 0.9, 0.2).transpose(1, 2)
        x, _ = self.first(x)
        x, _ = self.second(x)
        x = self.norm(x)[:, -1]
        return torch.softmax(self.head(torch.tanh(self.square(x))), -1)


class Detector(nn.Module):
    """A pyramid of features with heads for boxes and classes at two scales."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.SiLU())
        self.low = nn.Sequential(nn.Conv2d(16, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.LeakyReLU(0.1))
        self.high = nn.Sequential(nn.Conv2d(24, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.LeakyReLU(0.1))
        self.lateral = nn.Conv2d(32, 24, 1)
        self.merge = nn.Conv2d(24, 24, 3, padding=1)
        self.boxes, self.classes = nn.Conv2d(24, 4, 1), nn.Conv2d(24, 3, 1)
        self.far = nn.Conv2d(32, 7, 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        low = self.low(self.stem(image))
        high = self.high(low)
        up = F.interpolate(self.lateral(high), scale_factor=2.0, mode="nearest")
        near = F.interpolate(self.merge(low + up), scale_factor=2.0, mode="bilinear", align_corners=False)
        boxes = torch.sigmoid(self.boxes(near)).flatten(2) * 32.0
        scores = torch.softmax(self.classes(near).flatten(2), 1)
        far = self.far(F.avg_pool2d(high, 3, 1, 1)).flatten(2)
        return torch.cat([boxes, scores], 1).transpose(1, 2), far


def _words(rows: int = 2, time: int = 12) -> torch.Tensor:
    return torch.randint(0, 100, (rows, time))


def _made(make: Callable[[], nn.Module], inputs: Callable[[], tuple[Any, ...]], seed: int = 0) -> Callable[[], Built]:
    def build() -> Built:
        torch.manual_seed(seed)
        return _settled(make()), inputs()

    return build


NETWORKS: dict[str, Callable[[], Built]] = {
    "cnn": _made(Cnn, lambda: (torch.randn(2, 3, 33, 33),)),
    "transformer": _made(Transformer, lambda: (_words(),)),
    "gated transformer": _made(lambda: Transformer(4, gate=True), lambda: (_words(1, 20),), 1),
    "vision transformer": _made(Vision, lambda: (torch.randn(2, 3, 32, 32),)),
    "lstm": _made(Recurrent, lambda: (torch.randn(2, 1, 80),)),
    "detector": _made(Detector, lambda: (torch.randn(1, 3, 64, 64),)),
}
