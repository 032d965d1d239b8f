"""A residual network that tells which of ten photographs a piece of 32x32 pixels is from; trained here in minutes.

The photographs are those that scikit-image and scikit-learn ship. A square of 64 pixels is for training, for
calibration or for the test, so that no pixel is in two of them. Brightness and contrast vary, and noise is added:
texture remains.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from precision import training

NAME = "patches"
METRIC = "top1"
BETTER = "higher"
STEPS = 800
BATCH = 32
SQUARE, SIDE = 64, 32
NOISE = 0.02
"""Standard deviation of the noise, of a white of 1."""
PICTURES = ("brick", "cell", "china", "coins", "grass", "gravel", "hubble_deep_field", "ihc", "moon", "retina")
"""Those of a texture of their own. With portraits and still lifes beside them such a network is right in 66 of 100."""
SHARES = (0.65, 0.1, 0.25)
MOST_SQUARES = 80
"""Squares of one photograph."""
TEST, CALIBRATION = 500, 100


def prepare(folder: Path) -> Path:
    """Train the network, some four minutes on one core, and export it with a dynamic batch."""
    import torch
    from torch import nn
    from torch.nn import functional

    path = folder / "patches.onnx"
    if path.exists():
        return path
    training.seeded()

    class Residual(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.one = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
            self.two = nn.Conv2d(after, after, 3, padding=1, bias=False)
            self.norms = nn.ModuleList(nn.BatchNorm2d(after) for _ in range(2))
            self.short = nn.Identity()
            if stride != 1 or before != after:
                self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = functional.relu(self.norms[0](self.one(x)))
            return functional.relu(self.short(x) + self.norms[1](self.two(y)))

    network = nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(),
        Residual(24, 24, 1), Residual(24, 48, 2), Residual(48, 48, 1), Residual(48, 96, 2), Residual(96, 96, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, len(PICTURES)),
    )  # fmt: skip
    squares, classes = _squares(0)

    def batch(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        draw = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
        chosen = _balanced(classes, BATCH, draw)
        pieces = np.concatenate([_piece(squares[index], draw) for index in chosen])
        return torch.from_numpy(pieces), torch.from_numpy(classes[chosen])

    network = training.train(network, batch, STEPS, rate=3e-3)
    example = torch.zeros(2, 1, SIDE, SIDE)
    return training.export(network, (example,), path, ["image"], ({0: torch.export.Dim.DYNAMIC},))


def _picture(name: str) -> np.ndarray:
    import skimage
    import sklearn

    folders = (Path(skimage.__file__).parent / "data", Path(sklearn.__file__).parent / "datasets" / "images")
    path = next(path for folder in folders for path in sorted(folder.glob(f"{name}.*")))
    return np.asarray(Image.open(path).convert("L"), np.float32) / 255


def _squares(part: int) -> tuple[np.ndarray, np.ndarray]:
    """Squares of the photographs, float32 [n, 64, 64], and which photograph each is from."""
    squares, classes = [], []
    for number, name in enumerate(PICTURES):
        picture = _picture(name)
        high, wide = (side // SQUARE for side in picture.shape)
        cut = picture[: high * SQUARE, : wide * SQUARE].reshape(high, SQUARE, wide, SQUARE).swapaxes(1, 2)
        cut = cut.reshape(-1, SQUARE, SQUARE)
        cut = cut[cut.std((1, 2)) > 0.02]  # what is all black, around a retina, says nothing
        chosen = training.split(len(cut), SHARES, seed=number)[part][:MOST_SQUARES]
        squares.append(cut[chosen])
        classes.append(np.full(len(chosen), number))
    return np.concatenate(squares), np.concatenate(classes)


def _balanced(classes: np.ndarray, count: int, draw: np.random.Generator) -> np.ndarray:
    """Indices of squares, each photograph as likely as any other."""
    wanted = draw.integers(len(PICTURES), size=count)
    return np.array([draw.choice(np.flatnonzero(classes == number)) for number in wanted])


def _piece(square: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """A piece of the square at a random place, float32 [1, 1, 32, 32], maybe mirrored, of another light."""
    top, left = draw.integers(SQUARE - SIDE + 1, size=2)
    piece = square[top : top + SIDE, left : left + SIDE]
    if draw.random() < 0.5:
        piece = piece[:, ::-1]
    piece = (piece - 0.5) * draw.uniform(0.8, 1.2) + 0.5 + draw.uniform(-0.1, 0.1)
    return (piece + draw.normal(0, NOISE, piece.shape)).astype(np.float32)[None, None]


def _items(part: int, count: int) -> Iterator[tuple[dict[str, np.ndarray], int]]:
    squares, classes = _squares(part)
    draw = np.random.default_rng(part)
    for index in _balanced(classes, count, draw):
        yield {"image": _piece(squares[index], draw)}, int(classes[index])


def samples() -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """500 pieces, and the numbers of their photographs."""
    return _items(2, TEST)


def calibration() -> Iterator[tuple[dict[str, np.ndarray], int]]:
    """100 pieces of other squares."""
    return _items(1, CALIBRATION)


def decode(outputs: dict[str, np.ndarray]) -> int:
    """The photograph of the highest score."""
    return int(outputs["output"][0].argmax())
