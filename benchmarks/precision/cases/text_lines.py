"""The text recogniser of RapidOCR (PP-OCRv6 small) on lines of text, drawn in fonts that packages ship, with noise."""

from __future__ import annotations

import math
import shutil
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

NAME = "text_lines"
METRIC = "cer"
BETTER = "lower"
HEIGHT, LEAST_WIDTH = 48, 320
"""Pixels of the network's picture, as RapidOCR prepares one."""
FONTS = "font_*/files/*.ttf"
TEST, CALIBRATION = 150, 60
WORDS = """
account amount april arrival average balance battery between bicycle building calendar camera castle certain change
city customer delivery department distance document electric engine evening example express factory february flight
garden general harbour height history hospital hundred invoice island january journey kitchen language library
machine market measure message minute monday mountain museum network number october office order oxygen package
payment people pepper picture pocket police position pressure product quality quantity question railway receipt
record region report reserve river school science season service signal silver sister standard station street
subject summer sunday support surface system telephone temperature theatre ticket total travel tuesday university
vehicle village volume water weather weight window winter wonderful yellow zero
"""


def prepare(folder: Path) -> Path:
    """Copy the model out of the package."""
    path = folder / "text_lines.onnx"
    if not path.exists():
        shutil.copy(_root() / "rapidocr" / "models" / "PP-OCRv6_rec_small.onnx", path)
    return path


def _root() -> Path:
    return Path(sysconfig.get_path("purelib"))


@cache
def _characters() -> list[str]:
    """What the classes stand for: the blank of CTC, the characters in the metadata of the model, the space."""
    import onnx

    model = onnx.load(_root() / "rapidocr" / "models" / "PP-OCRv6_rec_small.onnx")
    (listed,) = (entry.value for entry in model.metadata_props if entry.key == "character")
    return ["", *listed.splitlines(), " "]


def _line(draw: np.random.Generator) -> str:
    """Two to four words, some capital, and mostly a number, a date or a price."""
    words = [str(word) for word in draw.choice(WORDS.split(), draw.integers(2, 5))]
    style = draw.integers(3)
    words = [word.upper() if style == 0 else word.capitalize() if style == 1 else word for word in words]
    number = draw.integers(10, 9999)
    date = f"{draw.integers(1, 29)}/{draw.integers(1, 13)}/{draw.integers(1970, 2030)}"
    extra = ("", f"{number}", f"No. {number}", f"{number / 100:.2f} $", date)
    words.insert(int(draw.integers(len(words) + 1)), extra[draw.integers(len(extra))])
    return " ".join(word for word in words if word)


def _picture(text: str, font: Path, draw: np.random.Generator) -> Image.Image:
    """The line in dark on light or light on dark, turned a little, blurred, with noise."""
    size = int(draw.integers(14, 40))
    face = ImageFont.truetype(font, size)
    left, top, right, bottom = face.getbbox(text)
    margin = max(2, size // 5)
    ground, ink = draw.integers(170, 256), draw.integers(0, 90)
    if draw.random() < 0.3:
        ground, ink = ink, ground
    page = Image.new("L", (int(right - left) + 2 * margin, int(bottom - top) + 2 * margin), int(ground))
    ImageDraw.Draw(page).text((margin - left, margin - top), text, fill=int(ink), font=face)
    page = page.rotate(draw.uniform(-0.7, 0.7), Image.Resampling.BICUBIC, fillcolor=int(ground))
    page = page.filter(ImageFilter.GaussianBlur(draw.uniform(0, 0.05) * size))
    noisy = np.asarray(page, np.float32) + draw.normal(0, draw.uniform(2, 30), (page.height, page.width))
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def _feed(picture: Image.Image) -> np.ndarray:
    """The picture at the network's height, -1..1, zeros on its right: float32 [1, 3, 48, width]."""
    width = math.ceil(HEIGHT * picture.width / picture.height)
    plane = np.asarray(picture.resize((width, HEIGHT), Image.Resampling.BILINEAR), np.float32) / 127.5 - 1
    feed = np.zeros((1, 3, HEIGHT, max(width, LEAST_WIDTH)), np.float32)
    feed[:, :, :, :width] = plane
    return feed


def _items(seed: int, count: int) -> Iterator[tuple[dict[str, np.ndarray], str]]:
    draw = np.random.default_rng(seed)
    fonts = sorted(_root().glob(FONTS))
    for index in range(count):
        text = _line(draw)
        yield {"x": _feed(_picture(text, fonts[index % len(fonts)], draw))}, text


def samples() -> Iterator[tuple[dict[str, np.ndarray], str]]:
    """150 pictures of lines, and their texts."""
    return _items(0, TEST)


def calibration() -> Iterator[tuple[dict[str, np.ndarray], str]]:
    """60 pictures of other lines."""
    return _items(1, CALIBRATION)


def decode(outputs: dict[str, np.ndarray]) -> str:
    """The text: the best class of each step, repetitions and blanks left out."""
    (scores,) = outputs.values()
    best = scores[0].argmax(-1)
    kept = best[np.flatnonzero(np.diff(best, prepend=-1))]
    return "".join(_characters()[index] for index in kept)
