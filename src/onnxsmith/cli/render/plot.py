"""Computes the coordinates of a `Plot` and of `Intervals` for the HTML page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnxsmith.base.report.base import Intervals, Plot
from onnxsmith.cli.render.chart import BOTTOM, HEIGHT, LEFT, WIDTH

_ROW = 34
"""Height in pixels of the row of an interval. A choice."""
_FOOT = 2 * BOTTOM
"""Pixels below a plot for the numbers and the name of the axis."""
_FEW = 12
"""Largest number of points of a curve for which each gets a dot. A choice."""
_HUES, _DASHES = 5, 3
"""Colours and kinds of lines: curves beyond the colours differ by their lines."""


@dataclass(frozen=True)
class Curve:
    """A curve as SVG points, with vertical bars (x, low, high) and dots (x, y, text)."""

    name: str
    hue: int
    dash: int
    points: str
    bars: tuple[tuple[float, float, float], ...]
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True)
class Drawing:
    """The curves, and the grid with its numbers."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
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


def plotted(plot: Plot) -> Drawing:
    """Lays out a plot; y begins at 0."""
    xs = [x for one in plot.series for x in one.x]
    ys = [y for one in plot.series for y in (*one.y, *one.high)]
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    across = _scale(low, high, LEFT + 8, WIDTH - 16, logarithmic=plot.logarithmic and low > 0)
    up = _scale(0.0, max(ys, default=1.0) or 1.0, HEIGHT, 16)
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
        curves.append(Curve(one.name, number % _HUES, number // _HUES % _DASHES, points, bars_, dots))
    return Drawing(plot.title, plot.x, plot.y, tuple(curves), lines, places)


def spanned(intervals: Intervals) -> Spans:
    """Lays out intervals on a logarithmic scale, so that a ratio and its inverse are equally far from 1."""
    ends = [end for _, low, _, high in intervals.rows for end in (low, high)] + [intervals.at]
    low, high = min(ends), max(ends)
    margin = (high / low) ** 0.05 if low > 0 else 1.0
    low, high = low / margin, high * margin
    across = _scale(low, high, 16, WIDTH - 16, logarithmic=True)
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


def _scale(
    low: float, high: float, first: float, last: float, *, logarithmic: bool = False
) -> Callable[[float], float]:
    """Returns a function from values between low and high to pixels between first and last."""
    if logarithmic:
        inner = _scale(math.log(low), math.log(high), first, last)
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
