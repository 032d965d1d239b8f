"""Digits in many sizes and places, a small residual network that reads them, and the same network with fewer channels.

python digits.py train    trains for some seconds, and writes network.pt
python digits.py again    cuts the network as kept.json says, trains it on, and writes again.pt
"""

import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import nn

import onnxsmith

SIDE = 28
Picture = npt.NDArray[np.float32]


def picture(digit: int, draw: np.random.Generator) -> Picture:
    """A digit, float32 [1, 1, 28, 28] in 0..1, at a random place, in a random size, with noise."""
    image = Image.new("L", (SIDE, SIDE))
    x, y = draw.uniform(4, 8, size=2)
    ImageDraw.Draw(image).text((x, y), str(digit), fill=255, font=ImageFont.load_default(draw.uniform(16, 20)))
    plane = np.asarray(image, np.float32) / 255 + draw.normal(0, 0.1, (SIDE, SIDE)).astype(np.float32)
    return np.clip(plane, 0, 1)[None, None]


def pictures(count: int, seed: int) -> Iterator[tuple[Picture, int]]:
    """Pictures with their digits; the same ones for the same seed."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        digit = int(draw.integers(10))
        yield picture(digit, draw), digit


def samples() -> Iterator[tuple[dict[str, Picture], int]]:
    """What is tested: inputs by name, and the label."""
    for x, digit in pictures(400, seed=1):
        yield {"x": x}, digit


class Block(nn.Module):
    """Two convolutions, added to what goes in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_after = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.norm(self.first(x)).relu()
        return (self.norm_after(self.second(inner)) + x).relu()


class Network(nn.Module):
    """A small residual network: [n, 1, 28, 28] to [n, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, stride=2, padding=1)
        self.low = Block(16)
        self.wider = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.high = Block(32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.wider(self.low(self.stem(x).relu())).relu()
        return self.head(self.high(x).mean((2, 3)))


def fit(network: nn.Module, epochs: int, rate: float) -> nn.Module:
    """Trains the network on 1,500 pictures."""
    torch.manual_seed(0)
    found = list(pictures(1500, seed=0))
    x = torch.tensor(np.concatenate([one for one, _ in found]))
    y = torch.tensor([digit for _, digit in found])
    steps = torch.optim.Adam(network.parameters(), rate)
    network.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(network(x[rows]), y[rows])
            steps.zero_grad()
            loss.backward()
            steps.step()
    return network.eval()


def right(network: nn.Module) -> float:
    """The share of the tested pictures that the network reads."""
    found = list(pictures(400, seed=1))
    with torch.no_grad():
        digits = network(torch.tensor(np.concatenate([one for one, _ in found]))).argmax(1)
    return float((digits == torch.tensor([digit for _, digit in found])).float().mean())


Example = tuple[nn.Module, tuple[torch.Tensor]]


def build() -> Example:
    """The trained network, with an example input."""
    network = Network()
    network.load_state_dict(torch.load("network.pt"))
    return network.eval(), (torch.zeros(1, 1, SIDE, SIDE),)


def build_again() -> Example:
    """The network with fewer channels, trained on, with an example input."""
    network = Network()
    onnxsmith.shrink(network, "kept.json")
    network.load_state_dict(torch.load("again.pt"))
    return network.eval(), (torch.zeros(1, 1, SIDE, SIDE),)


def main() -> None:
    """Trains the network, or cuts it and trains it on."""
    torch.manual_seed(0)
    if sys.argv[1] == "train":
        network = fit(Network(), 4, 3e-3)
        torch.save(network.state_dict(), "network.pt")
    else:
        network, _ = build()
        onnxsmith.shrink(network, "kept.json")
        network = fit(network, 3, 2e-3)
        torch.save(network.state_dict(), "again.pt")
    print(f"{right(network):.1%} of the tested pictures are read")


if __name__ == "__main__":
    main()
