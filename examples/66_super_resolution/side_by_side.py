"""Draw four crops of a picture beside each other: the input, bicubic, the network, and how far the network is off."""

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

SIDE = 96  # pixels of the crop in the enlarged picture
ZOOM = 3  # each pixel becomes a square, so that the eye sees it
GAP, TITLE = 12, 44  # pixels around the crops, and above them for two lines of text
AMPLIFIED = 8  # the difference is faint: black is no difference, white is 32 of 255 or more

Plane = npt.NDArray[np.uint8]  # one channel, [height, width], 0..255


def interesting(first: Plane, second: Plane) -> tuple[int, int]:
    """Return the top and the left of the crop, on a grid of half its side, where two planes differ most."""
    apart = (first.astype(np.float64) - second.astype(np.float64)) ** 2
    tops = range(0, max(apart.shape[0] - SIDE, 0) + 1, SIDE // 2)
    lefts = range(0, max(apart.shape[1] - SIDE, 0) + 1, SIDE // 2)
    places = [(top, left) for top in tops for left in lefts]
    return max(places, key=lambda at: float(apart[at[0] : at[0] + SIDE, at[1] : at[1] + SIDE].sum()))


def difference(plane: Plane, truth: Plane) -> Image.Image:
    """Return the absolute difference of two planes of one shape, amplified, mode "L"."""
    apart = np.abs(plane.astype(np.int16) - truth.astype(np.int16)) * AMPLIFIED
    return Image.fromarray(np.clip(apart, 0, 255).astype(np.uint8))


def side_by_side(pictures: list[tuple[str, str, Image.Image]], at: tuple[int, int]) -> Image.Image:
    """Return one picture with the same crop of each picture. Each has a title, a line below it, and one size for all;
    `at` is the top and the left of the crop."""
    top, left = at
    width = SIDE * ZOOM
    sheet = Image.new("RGB", (GAP + len(pictures) * (width + GAP), TITLE + width + GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for number, (title, below, picture) in enumerate(pictures):
        x = GAP + number * (width + GAP)
        crop = picture.convert("RGB").crop((left, top, left + SIDE, top + SIDE))
        sheet.paste(crop.resize((width, width), Image.Resampling.NEAREST), (x, TITLE))
        draw.text((x, 4), title, fill="black", font=ImageFont.load_default(16))
        draw.text((x, 24), below, fill="dimgray", font=ImageFont.load_default(14))
    return sheet
