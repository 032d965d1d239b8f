"""Computes the coordinates of a `Chart`, a `Plot` and of `Intervals` for the HTML page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.base import Chart, Intervals, Plot
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


_ROW = 34
"""Height in pixels of the row of an interval. A choice."""
_FOOT = 2 * BOTTOM
"""Pixels below a plot for the numbers and the name of the axis."""
_FEW = 12
"""Largest number of points of a curve for which each gets a dot. A choice."""
_HUES, _DASHES = 5, 3
"""Colours and kinds of lines: curves beyond the colours differ by their lines."""


@dataclass(frozen=True)
class PlotCurve:
    """A curve as SVG points, with vertical bars (x, low, high) and dots (x, y, text)."""

    name: str
    hue: int
    dash: int
    points: str
    bars: tuple[tuple[float, float, float], ...]
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True)
class PlotDrawing:
    """The curves, and the grid with its numbers."""

    title: str
    x: str
    y: str
    curves: tuple[PlotCurve, ...]
    lines: tuple[tuple[float, str], ...]
    places: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT + _FOOT
    left: int = LEFT
    bottom: int = HEIGHT


@dataclass(frozen=True)
class Spans:
    """Rows (name, y, x of low, estimate and high, text), the grid, and the line `at`."""

    title: str
    rows: tuple[tuple[str, float, float, float, float, str], ...]
    places: tuple[tuple[float, str], ...]
    at: float
    height: int
    bottom: int
    width: int = WIDTH


def plotted(plot: Plot) -> PlotDrawing:
    """Lays out a plot; y begins at 0."""
    xs = [x for one in plot.series for x in one.x]
    ys = [y for one in plot.series for y in (*one.y, *one.high)]
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    across = _pixels(low, high, LEFT + 8, WIDTH - 16, logarithmic=plot.logarithmic and low > 0)
    up = _pixels(0.0, max(ys, default=1.0) or 1.0, HEIGHT, 16)
    lines = tuple((round(up(tick), 1), f"{tick:g}") for tick in ticks(0.0, max(ys, default=1.0) or 1.0))
    marks = _powers(low, high) if plot.logarithmic and low > 0 else ticks(low, high)
    if 0 < len(set(xs)) <= _FEW:
        marks = sorted(set(xs))
    places = tuple((round(across(tick), 1), f"{tick:g}") for tick in marks)
    curves = []
    for number, one in enumerate(plot.series):
        where = [(round(across(x), 1), round(up(y), 1)) for x, y in zip(one.x, one.y, strict=True)]
        bars = zip((x for x, _ in where), map(up, one.low), map(up, one.high), strict=False)
        dots = (
            tuple((x, y, f"{one.name}: {a:.4g}, {b:.4g}") for (x, y), a, b in zip(where, one.x, one.y, strict=True))
            if len(where) <= _FEW
            else ()
        )
        points = " ".join(f"{x},{y}" for x, y in where)
        bars_ = tuple((x, round(a, 1), round(b, 1)) for x, a, b in bars)
        curves.append(PlotCurve(one.name, number % _HUES, number // _HUES % _DASHES, points, bars_, dots))
    return PlotDrawing(plot.title, plot.x, plot.y, tuple(curves), lines, places)


def spanned(intervals: Intervals) -> Spans:
    """Lays out intervals on a logarithmic scale, so that a ratio and its inverse are equally far from 1."""
    ends = [end for _, low, _, high in intervals.rows for end in (low, high)] + [intervals.at]
    low, high = min(ends), max(ends)
    margin = (high / low) ** 0.05 if low > 0 else 1.0
    low, high = low / margin, high * margin
    across = _pixels(low, high, 16, WIDTH - 16, logarithmic=True)
    bottom = _ROW * len(intervals.rows) + 4
    rows = tuple(
        (
            name,
            float(_ROW * index + _ROW - 8),
            *(round(across(value), 1) for value in (a, b, c)),
            f"{b:.3g}, {a:.3g} to {c:.3g}",
        )
        for index, (name, a, b, c) in enumerate(intervals.rows)
    )
    places = tuple((round(across(tick), 1), f"{tick:g}") for tick in _powers(low, high))
    at = round(across(intervals.at), 1)
    return Spans(intervals.title, rows, places, at, bottom + BOTTOM, bottom)  # type: ignore[arg-type]


def _pixels(
    low: float, high: float, first: float, last: float, *, logarithmic: bool = False
) -> Callable[[float], float]:
    """Returns a function from values between low and high to pixels between first and last."""
    if logarithmic:
        inner = _pixels(math.log(low), math.log(high), first, last)
        return lambda value: inner(math.log(value))
    width = high - low
    return lambda value: first + (last - first) * ((value - low) / width if width else 0.5)


def ticks(low: float, high: float, about: int = 6) -> Sequence[float]:
    """Returns round numbers between low and high: multiples of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first = math.ceil(low / step - 1e-9)
    return [step * index for index in range(first, math.floor(high / step + 1e-9) + 1)]


def _powers(low: float, high: float) -> Sequence[float]:
    """Returns round numbers for a logarithmic scale; evenly spaced ones if low and high are close."""
    if high < 4 * low:
        return ticks(low, high)
    found = [
        factor * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factor in ((1, 2, 5) if high < 1000 * low else (1,))
    ]
    return [tick for tick in found if low <= tick <= high]
