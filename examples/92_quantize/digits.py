"""Digits in many sizes and places, a small network that reads them, and the data that `quantize` measures it on.

python digits.py        trains for a few seconds, and writes digits.onnx
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

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
    for x, digit in pictures(300, seed=1):
        yield {"x": x}, digit


def calibration() -> Iterator[tuple[dict[str, Picture], int]]:
    """Other pictures, from which the ranges of activations are taken."""
    for x, digit in pictures(100, seed=2):
        yield {"x": x}, digit


def main() -> None:
    """Trains the network and exports it."""
    import torch
    from torch import nn

    import onnxsmith

    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten(),
              nn.Linear(32 * 5 * 5, 64), nn.ReLU(), nn.Linear(64, 10)]  # fmt: skip
    network = nn.Sequential(*layers)
    found = list(pictures(1500, seed=0))
    x = torch.tensor(np.concatenate([one for one, _ in found]))
    y = torch.tensor([digit for _, digit in found])
    steps = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(network(x[rows]), y[rows])
            steps.zero_grad()
            loss.backward()
            steps.step()
    network.eval()
    assert onnxsmith.export(network, (x[:1],), output="digits.onnx", input_names=["x"]).ok


if __name__ == "__main__":
    main()
