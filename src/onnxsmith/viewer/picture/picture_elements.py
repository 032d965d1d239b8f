"""Defines the elements of a picture: boxes, lines and texts, in pixels from the upper left corner."""

from __future__ import annotations

from dataclasses import dataclass, field

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
