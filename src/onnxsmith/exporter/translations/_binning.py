"""Histograms of points, along any number of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.searchsorted import search


def edges(points: Any, bins: Sequence[int], limits: Sequence[float] | None) -> list[Any]:
    """For each column of `points` the ends of as many bins of one width, from its least to its greatest, or as
    `limits` (low, high, low, high …) say. Bins that would have no width are widened by half on either side, and those
    of no points lie between 0 and 1."""
    found = []
    for axis, count in enumerate(bins):
        column = points[:, axis]
        if limits:
            low, high = (torch.full((), float(v), dtype=points.dtype) for v in limits[2 * axis : 2 * axis + 2])
        elif column.shape[0] == 0:
            low, high = torch.zeros((), dtype=points.dtype), torch.ones((), dtype=points.dtype)
        else:
            low, high = column.amin(0), column.amax(0)
        half = torch.where(low == high, torch.full((), 0.5, dtype=points.dtype), torch.zeros((), dtype=points.dtype))
        found.append(_linspace(low - half, high + half, count + 1))
    return found


def histogram(points: Any, ends: Sequence[Any], weight: Any, density: bool) -> Any:
    """How many of `points` [points, axes], or how much of their weight, lies in each bin between `ends`. A bin has its
    lower end, the last one both. `density` divides by the sum and by the bins' volumes."""
    sizes = [end.shape[0] - 1 for end in ends]
    place: Any = None
    inside: Any = None
    for axis, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        column = points[:, axis].contiguous()
        within = (column >= end[0]).logical_and(column <= end[-1])
        number = (search(end.contiguous(), column, right=True) - 1).clamp(0, size - 1)
        place = number if place is None else place * size + number
        inside = within if inside is None else inside.logical_and(within)
    amount = torch.ones_like(points[:, 0]) if weight is None else weight.reshape(-1)
    amount = torch.where(inside, amount, torch.zeros((), dtype=points.dtype))
    counted = torch.zeros((math.prod(sizes),), dtype=points.dtype).scatter_add(0, place, amount).reshape(sizes)
    if not density:
        return counted
    found = counted / counted.sum()
    for axis, end in enumerate(ends):
        found = found / end.diff().reshape([-1 if axis == other else 1 for other in range(len(ends))])
    return found


def _linspace(low: Any, high: Any, count: int) -> Any:
    """From both ends to the middle, as PyTorch's `linspace` rounds."""
    step = (high - low) / (count - 1)
    number = torch.arange(count, dtype=low.dtype)
    return torch.where(number < count // 2, low + step * number, high - step * (count - 1 - number))
