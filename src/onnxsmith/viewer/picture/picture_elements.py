"""Defines the elements of a picture in pixels: boxes, lines and texts, which it measures and shortens."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from PIL import ImageFont

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """Describes a rounded box. `stacked` draws a second box behind it, for items that can be opened."""

    x: float
    y: float
    width: float
    height: float
    radius: float
    fill: str
    line: str
    stacked: bool = False


@dataclass(frozen=True)
class Line:
    """Describes a smooth line through points, which leaves and reaches each point vertically. `arrow` marks its end."""

    points: tuple[Point, ...]
    colour: str
    dashed: bool = False
    arrow: bool = True


@dataclass(frozen=True)
class Text:
    """Describes one line of text. `anchor` is `start`, `middle` or `end`; y is the baseline."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    anchor: str = "middle"
    bold: bool = False


@dataclass(eq=False)
class Picture:
    """Holds all shapes, in the order in which they are drawn."""

    title: str
    width: float = 0.0
    height: float = 0.0
    lines: list[Line] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


_WIDER = 1.06
"""Says how much wider other fonts are than the built-in font. Measured: DejaVu Sans, the widest of the usual fonts, is
wider by 6%."""
_REFERENCE = 20


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Returns Pillow's built-in font."""
    return ImageFont.load_default(size)


@cache
def _letter(one: str) -> float:
    return font(_REFERENCE).getlength(one) / _REFERENCE


def width(text: str, size: float) -> float:
    """Returns the width of a text in pixels."""
    return sum(map(_letter, text)) * size * _WIDER


def cut(text: str, size: float, most: float) -> str:
    """Shortens a text in the middle, so that its beginning and its end stay."""
    text = " ".join(text.split())[:400]
    if width(text, size) <= most:
        return text
    head, tail = text[: (len(text) + 1) // 2], text[(len(text) + 1) // 2 :]
    while head and width(f"{head}…{tail}", size) > most:
        if len(head) >= len(tail):
            head = head[:-1]
        else:
            tail = tail[1:]
    return f"{head}…{tail}"
