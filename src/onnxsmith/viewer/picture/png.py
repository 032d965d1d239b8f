"""Paints a picture as PNG with Pillow."""

from __future__ import annotations

import io
import math

from PIL import Image, ImageDraw

from onnxsmith.viewer.picture.picture_elements import Box, Line, Picture, Point, Text, font
from onnxsmith.viewer.picture.svg import STEEP

_SCALE = 2.0
"""Counts the pixels of the file along each pixel of the picture. A choice: print needs about 200 dots an inch."""
_MOST = 60e6
"""Limits the pixels of a file. A choice: 180 MB while it is painted."""
_STEPS = 12
"""Counts the straight pieces of a curve."""
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def to_png(picture: Picture) -> tuple[bytes, str]:
    """Returns the bytes of a PNG file, and a note if the picture had to be made smaller."""
    fit = math.sqrt(_MOST / max(1.0, picture.width * picture.height))
    longest = 60_000 / max(1.0, picture.width, picture.height)
    scale = min(_SCALE, fit, longest)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    image = Image.new("RGB", size, "#ffffff")
    pen = ImageDraw.Draw(image)
    for line in picture.lines:
        _line(pen, line, scale)
    for box in picture.boxes:
        _box(pen, box, scale)
    for text in picture.texts:
        _text(pen, text, scale)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=size[0] * size[1] < 4e6)
    note = f"the picture was reduced to {scale:.0%} of its size" if scale < 1 else ""
    return file.getvalue(), note


def _line(pen: ImageDraw.ImageDraw, line: Line, scale: float) -> None:
    points = _curve(line)
    scaled = [(x * scale, y * scale) for x, y in points]
    thick = max(1, round(1.2 * scale))
    if line.dashed:
        for one, other in zip(scaled[::2], scaled[1::2], strict=False):
            pen.line([one, other], line.colour, thick)
    else:
        pen.line(scaled, line.colour, thick, joint="curve")
    if line.arrow:
        x, y = scaled[-1]
        wide = 3.6 * scale
        pen.polygon([(x - wide, y - 2 * wide), (x + wide, y - 2 * wide), (x, y)], line.colour)


def _curve(line: Line) -> list[Point]:
    """Returns points on the curve that `svg.way` writes."""
    found = [line.points[0]]
    for (x, y), (to_x, to_y) in zip(line.points, line.points[1:], strict=False):
        for step in range(1, _STEPS + 1):
            t = step / _STEPS
            far = 3 * t * t * (1 - t)
            across = far + t**3
            down = 3 * t * (1 - t) ** 2 * STEEP + far * (1 - STEEP) + t**3
            found.append((x + (to_x - x) * across, y + (to_y - y) * down))
    return found


def _box(pen: ImageDraw.ImageDraw, box: Box, scale: float) -> None:
    for by in (4.0, 0.0) if box.stacked else (0.0,):
        edges = (box.x + by, box.y - by, box.x + by + box.width, box.y - by + box.height)
        pen.rounded_rectangle(
            [round(edge * scale) for edge in edges],
            radius=box.radius * scale,
            fill=box.fill,
            outline=box.line,
            width=max(1, round(1.2 * scale)),
        )


def _text(pen: ImageDraw.ImageDraw, text: Text, scale: float) -> None:
    size = max(1, round(text.size * scale))
    shown = text.text.encode(errors="replace").decode()
    pen.text(
        (text.x * scale, text.y * scale),
        shown,
        fill=text.colour,
        font=font(size),
        anchor=_ANCHORS[text.anchor],
        stroke_width=round(1.5 * scale) if text.anchor == "start" else 0,
        stroke_fill="#ffffff",
    )
