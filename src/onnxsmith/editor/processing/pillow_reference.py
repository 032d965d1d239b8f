"""Processes pictures with Pillow and numpy, to compare the nodes of a graph with them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from onnxsmith.editor.processing.picture_rules import PictureRules

if TYPE_CHECKING:
    from PIL import Image

Pixels = npt.NDArray[np.uint8]


def name() -> str:
    """Returns the name of the reference, with its version."""
    import PIL

    return f"Pillow {PIL.__version__}"


@cache
def rows_may_come_first() -> bool:
    """Whether the installed Pillow resizes columns before rows only if that is not slower. Older versions always resize
    along the width first. The order counts: each pass rounds to a grey level of 0..255."""
    from PIL import Image

    bits = np.random.default_rng(0).integers(0, 2, (64, 16), dtype=np.uint8)
    picture, filter_ = Image.fromarray(bits * np.uint8(255)), Image.Resampling.BICUBIC
    width_first = picture.resize((12, 64), filter_).resize((12, 8), filter_)
    return picture.resize((12, 8), filter_).tobytes() != width_first.tobytes()


def grey_levels(picture: Pixels, rules: PictureRules) -> npt.NDArray[np.float64]:
    """Returns the grey levels of the model's input before the normalisation, [channels, height, width], from a picture
    [height, width, channels]."""
    from PIL import Image

    height, width = picture.shape[:2]
    size, filter_ = rules.resized(height, width), Image.Resampling[rules.resize.upper()]
    planes = [np.asarray(one.resize(size[::-1], filter_)) for one in _planes(picture, rules)]
    levels = np.stack(planes[::-1] if rules.colour == "bgr" else planes).astype(np.float64)
    rows, columns = rules.size
    if rules.fit == "pad":
        filled = np.full((len(levels), rows, columns), float(rules.fill))
        top, left = (rules.start(rows, size[0]), rules.start(columns, size[1])) if rules.place == "centre" else (0, 0)
        filled[:, top : top + size[0], left : left + size[1]] = levels
        return filled
    top, left = rules.start(size[0], rows), rules.start(size[1], columns)
    return levels[:, top : top + rows, left : left + columns]


def _planes(picture: Pixels, rules: PictureRules) -> list[Image.Image]:
    """Returns one picture for each channel: Pillow would multiply the colours of a fourth channel with it."""
    from PIL import Image

    if rules.colour == "grey":
        return [Image.fromarray(picture).convert("L")]
    return [Image.fromarray(np.ascontiguousarray(picture[:, :, at])) for at in range(picture.shape[2])]


def pictures(rules: PictureRules, batch: int, seed: int) -> Iterator[Pixels]:
    """Yields generated pictures [batch, height, width, channels] of several sizes: smooth colours with noise, and hard
    black and white edges."""
    random = np.random.default_rng(seed)
    for height, width in sizes(rules):
        yield np.stack([_picture(random, height, width, rules.picture_channels, at % 2) for at in range(batch)])


def sizes(rules: PictureRules) -> list[tuple[int, int]]:
    """Returns the sizes of the generated pictures: one pixel, the size of the result, portrait, landscape, smaller,
    larger, and sizes at which the middle is not a whole pixel."""
    height, width = rules.size
    found = [
        (1, 1), (height, width), rules.resized_to or (height, width), (2 * height + 3, width + 5),
        (height + 1, 2 * width + 7), (height // 2 + 1, width // 3 + 1), (3 * height // 2, 5 * width // 2 + 1),
        (37, 53), (53, 37), (1, width + 2),
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def _picture(random: np.random.Generator, height: int, width: int, channels: int, kind: int) -> Pixels:
    rows, columns = np.linspace(0, 1, height)[:, None, None], np.linspace(0, 1, width)[None, :, None]
    waves = np.sin(7 * rows + 5 * columns + np.arange(channels)) * 60 + 100 * rows + 60 * columns + 40
    noisy = waves + random.normal(0, 25, (height, width, channels))
    edges = random.random((height, width, 1)) < (0.5 if kind else 0.1)
    ink = 255.0 * random.integers(0, 2, (height, width, channels))
    return np.clip(np.where(edges, ink, noisy), 0, 255).astype(np.uint8)
