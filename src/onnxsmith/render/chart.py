"""Computes the coordinates of a `Chart` for the HTML page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onnxsmith.report.base import Chart

WIDTH, HEIGHT, LEFT, BOTTOM = 960, 240, 56, 20
"""Size of a chart and its margins, in pixels; a choice."""
_LEAST = 1e-12
"""Smaller values, zero included, are drawn on the bottom line; a choice: far below the rounding of float32 (6e-8)."""

_LONGEST = 60
"""Characters of a label below the axis. A choice: two of them fit."""


@dataclass(frozen=True)
class Curve:
    """One curve: its name, its number (which chooses the colour), and its unbroken pieces as SVG points `x,y x,y …`."""

    name: str
    number: int
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """The curves, the grid lines at powers of ten (y, text), and the positions of the labels (x, text)."""

    title: str
    curves: tuple[Curve, ...]
    lines: tuple[tuple[float, str], ...]
    places: tuple[tuple[float, str], ...]
    marks: tuple[tuple[float, str, str], ...]
    """The first and the last label, below the axis: x, text, anchor."""
    x: str
    y: str
    width: int = WIDTH
    height: int = HEIGHT + BOTTOM
    left: int = LEFT
    bottom: int = HEIGHT - BOTTOM
    step: float = 1.0


def drawn(chart: Chart) -> Drawing:
    """Lays out a chart on a logarithmic vertical axis."""
    numbers = [value for _, values in chart.curves for value in values if value is not None and math.isfinite(value)]
    low = math.floor(math.log10(max(min(numbers, default=_LEAST), _LEAST)))
    high = max(math.ceil(math.log10(max(max(numbers, default=1.0), _LEAST))), low + 1)
    step = (WIDTH - LEFT) / max(len(chart.labels), 1)

    def height_of(value: float) -> float:
        power = high if not math.isfinite(value) else math.log10(max(value, 10.0**low))
        return (high - power) / (high - low) * (HEIGHT - BOTTOM)

    places = tuple((LEFT + (index + 0.5) * step, label) for index, label in enumerate(chart.labels))
    every = max(1, (high - low) // 6)  # about six grid lines; a choice
    lines = tuple((height_of(10.0**power), f"1e{power}") for power in range(low, high + 1, every))
    curves = tuple(
        Curve(name, number, _pieces([None if v is None else height_of(v) for v in values], [x for x, _ in places]))
        for number, (name, values) in enumerate(chart.curves)
    )
    marks = [(float(LEFT), _short(chart.labels[0]), "start")] if chart.labels else []
    marks += [(float(WIDTH), _short(chart.labels[-1]), "end")] if len(chart.labels) > 1 else []
    return Drawing(chart.title, curves, lines, places, tuple(marks), chart.x, chart.y, step=step)


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _pieces(heights: list[float | None], places: list[float]) -> tuple[str, ...]:
    pieces: list[list[str]] = [[]]
    for x, y in zip(places, heights, strict=True):
        if y is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{x:.1f},{y:.1f}")
    return tuple(" ".join(piece) for piece in pieces if piece)
