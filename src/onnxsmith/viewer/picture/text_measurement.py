"""Measures texts, and shortens texts that are too long. Pillow's built-in font takes the place of the reader's font."""

from __future__ import annotations

from functools import cache

from PIL import ImageFont

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
