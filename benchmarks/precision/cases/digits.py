"""A small convolutional network on the handwritten digits of scikit-learn, 8x8 pixels; trained here in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from precision import training

NAME = "digits"
METRIC = "top1"
BETTER = "higher"
STEPS = 600
BATCH = 64
SHARES = (0.6, 0.1, 0.3)
"""Of the 1797 pictures: training, calibration, test."""


def prepare(folder: Path) -> Path:
    """Train the network and export it, with a dynamic batch."""
    import torch
    from torch import nn

    path = folder / "digits.onnx"
    if path.exists():
        return path
    training.seeded()
    pictures, classes = (torch.from_numpy(array) for array in _part(0))
    network = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip

    def batch(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = torch.randint(len(pictures), (BATCH,), generator=generator)
        return pictures[chosen], classes[chosen]

    network = training.train(network, batch, STEPS, rate=2e-3)
    return training.export(network, (pictures[:2],), path, ["image"], ({0: torch.export.Dim.DYNAMIC},))


def _part(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures, float32 [n, 1, 8, 8] in 0..1, and classes, int64 [n]."""
    data = load_digits()
    chosen = training.split(len(data.target), SHARES)[number]
    pictures = (data.images[chosen, None] / 16).astype(np.float32)
    return pictures, data.target[chosen].astype(np.int64)


def _items(number: int) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    for picture, label in zip(*_part(number), strict=True):
        yield {"image": picture[None]}, int(label)


def samples() -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """539 pictures and their digits."""
    return _items(2)


def calibration() -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """180 other pictures."""
    return _items(1)


def decode(outputs: dict[str, np.ndarray]) -> int:
    """The digit of the highest score."""
    return int(outputs["output"][0].argmax())
