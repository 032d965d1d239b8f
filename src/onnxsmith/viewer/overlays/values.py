"""Ranges and NaN of the values of a run, out of `dump`."""

from __future__ import annotations

import math
from collections.abc import Iterator

from onnxsmith.base.report.parts.tables import Statistics
from onnxsmith.base.report.parts.values import Values
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying
from onnxsmith.viewer.scene import figure

_CLASSES = ["finite", "infinity", "NaN"]


class Ranges(Overlaying):
    """The largest magnitude that each node computed, its spread, its share of zeros, and where NaN and infinity are.
    Where there are some, that layer comes first: the page starts with the first. A node with NaN has the magnitude NaN,
    which is worse than any number, and one with an infinity has that."""

    def subject(self, part: Values) -> str:
        return part.model

    def layers(self, part: Values, names: Names) -> Iterator[Layer]:
        magnitude, spread = Layer("largest magnitude"), Layer("standard deviation")
        odd = Layer("NaN and infinity", scale="classes", classes=_CLASSES)
        for row in part.rows:
            seen = row.statistics
            if seen is None or "input" in row.roles:
                continue
            for node in names.maker(row.name):
                said = _said(row.name, seen)
                if seen.std is not None:
                    spread.figures[node] = figure(seen.std), said
                largest = _largest(seen)
                if largest is not None:
                    magnitude.figures[node] = figure(largest), said
                odd.figures[node] = 2 if seen.nan else 1 if seen.inf else 0, said
        found = any(value for value, _ in odd.figures.values())
        yield from (odd, magnitude, spread) if found else (magnitude, spread, odd)


def _largest(seen: Statistics) -> float | int | None:
    if seen.nan:
        return math.nan
    if seen.inf:
        return math.inf
    return None if seen.min is None or seen.max is None else max(abs(seen.min), abs(seen.max))


def _said(name: str, seen: Statistics) -> str:
    if seen.min is None or seen.max is None:
        return f"{name}: no finite value, {seen.oddities()}" if seen.oddities() else f"{name}: no elements"
    said = f"{name}: {seen.min} to {seen.max}"
    if seen.std is not None:
        said += f", mean {seen.mean:.3g}, standard deviation {seen.std:.3g}"
    return f"{said}, {seen.oddities()}" if seen.oddities() else said
