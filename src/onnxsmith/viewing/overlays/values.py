"""Ranges and NaN of the values of a run, out of `dump`."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.report.parts.values import Values
from onnxsmith.viewing.overlays.base import Layer, Names, Overlaying
from onnxsmith.viewing.scene import figure

_CLASSES = ["finite", "infinity", "NaN"]


class Ranges(Overlaying):
    """The largest magnitude that each node computed, its spread, its share of zeros, and where NaN and infinity are."""

    def layers(self, part: Values, names: Names) -> Iterator[Layer]:
        magnitude, spread = Layer("largest magnitude"), Layer("standard deviation")
        odd = Layer("NaN and infinity", scale="classes", classes=_CLASSES)
        for row in part.rows:
            seen = row.statistics
            if seen is None or "input" in row.roles:
                continue
            for node in names.maker(row.name):
                said = f"{row.name}: {seen.min} to {seen.max}"
                if seen.std is not None:
                    said += f", mean {seen.mean:.3g}, standard deviation {seen.std:.3g}"
                    spread.figures[node] = figure(seen.std), said
                if seen.oddities():
                    said += f", {seen.oddities()}"
                if seen.min is not None and seen.max is not None:
                    magnitude.figures[node] = figure(max(abs(seen.min), abs(seen.max))), said
                odd.figures[node] = 2 if seen.nan else 1 if seen.inf else 0, said
        yield magnitude
        yield spread
        yield odd
