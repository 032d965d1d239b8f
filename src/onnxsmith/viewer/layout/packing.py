"""Packs the components of a room side by side, and below each other where a line is full."""

from __future__ import annotations

import math
from collections.abc import Sequence

from onnxsmith.viewer.layout.graph import Layout

_APART = 1.2
"""Distance of neighbouring items."""
_SHAPE = 2.0
"""Columns for each row of a full room. A choice: a screen is wider than high, and an item wider than a row."""


def packed(parts: Sequence[tuple[Sequence[int], Layout]], count: int) -> Layout:
    """Places components, in their order. A component is the numbers of its items, and the layout of them."""
    sizes = [_size(layout) for _, layout in parts]
    area = sum(width * height for width, height in sizes)
    most = max([math.sqrt(area * _SHAPE), *(width for width, _ in sizes)], default=0.0) + 1e-6
    whole = Layout([0] * count, [0.0] * count)
    x, row, height = 0.0, 0, 0
    for (items, layout), (width, rows) in zip(parts, sizes, strict=True):
        if x and x + width > most:
            x, row, height = 0.0, row + height, 0
        shift = x - _left(layout)
        for item, own, place in zip(items, layout.rows, layout.x, strict=True):
            whole.rows[item], whole.x[item] = row + own, round(place + shift, 3)
        for (one, other), bends in layout.bends.items():
            whole.bends[items[one], items[other]] = [round(bend + shift, 3) for bend in bends]
        x, height = x + width, max(height, rows)
    return whole


def _size(layout: Layout) -> tuple[float, int]:
    bends = [bend for way in layout.bends.values() for bend in way]
    return max([*layout.x, *bends]) - _left(layout) + _APART, max(layout.rows) + 1


def _left(layout: Layout) -> float:
    return min([*layout.x, *(bend for way in layout.bends.values() for bend in way)])
