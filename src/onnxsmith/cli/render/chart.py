"""Computes the coordinates of a `Chart` for the HTML page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onnxsmith.base.report.base import Chart
from onnxsmith.base.words import shortened

WIDTH, HEIGHT, LEFT, BOTTOM = 960, 300, 56, 20
"""Size of a chart and its margins, in pixels; a choice."""
_LEAST = 1e-12
"""Smaller values, zero included, are drawn on the bottom line. A choice: far below the rounding of float32 (6e-8)."""
_ABOVE = 0.4
"""Least share of the height for values above 1, if there are any. A tensor that is off by twice its scale and one that
is off by a hundred times its scale have different faults. A choice."""
_INFINITE = 18
"""Pixels between the largest finite value and the line for infinite values. A choice: one line of text."""
_APART = 16
"""Least pixels between two texts beside the axis. A choice: one line of text."""
_LIES = (1, 2, 5)
"""Positions of grid lines within a decade if there is room, and possible ends of the axis."""

_LONGEST = 60
"""Longest label below the axis, in characters. A choice: two of them fit."""


@dataclass(frozen=True)
class Curve:
    """One curve: its name, its number (which chooses the colour), and its unbroken pieces as SVG points `x,y x,y …`."""

    name: str
    number: int
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """The curves, the grid lines (y, text), and the positions of the labels (x, text). The height of 1 is set only if
    values lie on both sides of 1."""

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
    one: float | None = None


@dataclass(frozen=True)
class _Scale:
    """A logarithmic axis from `low` to `high`, which are powers of ten. If there are values above 1, a decade above 1
    has more room than one below. `top` is the height of `high`, which is lower if infinite values have a line of their
    own."""

    low: float
    high: float
    top: float

    @property
    def above(self) -> float:
        """The share of the height for values above 1."""
        if self.low >= 0 or self.high <= 0:
            return 0.0 if self.high <= 0 else 1.0
        return max(_ABOVE, self.high / (self.high - self.low))

    def height_of(self, value: float) -> float:
        """Returns the height of a value in pixels, from the top."""
        if not math.isfinite(value):
            return 0.0
        power = min(max(math.log10(max(value, _LEAST)), self.low), self.high)
        if self.above in (0.0, 1.0):
            share = (power - self.low) / (self.high - self.low)
        elif power > 0:
            share = 1 - self.above + self.above * power / self.high
        else:
            share = (1 - self.above) * (power - self.low) / -self.low
        return self.top + (1 - share) * (HEIGHT - BOTTOM - self.top)

    def lines(self) -> list[tuple[float, str]]:
        """Returns grid lines with their numbers: powers of ten, then 2 and 5 times these if there is room."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        exact = [lie * 10.0**power for lie in _LIES for power in sorted(powers, key=lambda power: (power != 0, power))]
        found: list[tuple[float, str]] = []
        for value in exact:
            within = self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9
            y = self.height_of(value)
            if within and all(abs(y - other) >= _APART for other, _ in found):
                found.append((y, _number(value)))
        return sorted(found, reverse=True)


def _number(value: float) -> str:
    return (
        f"{value:g}"
        if 0.01 <= value < 1e5
        else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    )


def _scale(numbers: list[float], *, infinite: bool) -> _Scale:
    low = math.floor(math.log10(max(min(numbers, default=_LEAST), _LEAST)))
    most = max(max(numbers, default=1.0), _LEAST)
    decade = math.floor(math.log10(most))
    ends = [lie * 10.0**power for power in (decade, decade + 1) for lie in _LIES]
    high = math.log10(next(end for end in ends if end >= most * (1 - 1e-9)))
    return _Scale(low, max(high, low + 1), _INFINITE if infinite else 0)


def drawn(chart: Chart) -> Drawing:
    """Lays out a chart on a logarithmic vertical axis."""
    numbers = [value for _, values in chart.curves for value in values if value is not None]
    finite = [value for value in numbers if math.isfinite(value)]
    scale = _scale([value for value in finite if value > 0] or finite, infinite=len(finite) < len(numbers))
    height_of = scale.height_of
    step = (WIDTH - LEFT) / max(len(chart.labels), 1)

    places = tuple((LEFT + (index + 0.5) * step, label) for index, label in enumerate(chart.labels))
    lines = (*scale.lines(), *([(0.0, "inf")] if scale.top else []))
    one = height_of(1.0) if scale.low < 0 < scale.high else None
    curves = tuple(
        Curve(name, number, _pieces([None if v is None else height_of(v) for v in values], [x for x, _ in places]))
        for number, (name, values) in enumerate(chart.curves)
    )
    marks = [(float(LEFT), shortened(chart.labels[0], _LONGEST), "start")] if chart.labels else []
    marks += [(float(WIDTH), shortened(chart.labels[-1], _LONGEST), "end")] if len(chart.labels) > 1 else []
    return Drawing(chart.title, curves, lines, places, tuple(marks), chart.x, chart.y, step=step, one=one)


def _pieces(heights: list[float | None], places: list[float]) -> tuple[str, ...]:
    pieces: list[list[str]] = [[]]
    for x, y in zip(places, heights, strict=True):
        if y is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{x:.1f},{y:.1f}")
    return tuple(" ".join(piece) for piece in pieces if piece)
