"""Reads windows along one axis of a tensor into a new axis."""

from __future__ import annotations

from typing import Any

import torch


def windows(x: torch.Tensor, axis: int, places: torch.Tensor) -> torch.Tensor:
    """`x` with `axis` replaced by those of `places` [windows, length], which are places along it."""
    axis %= x.dim()
    found = x.index_select(axis, places.reshape(-1))
    return found.reshape([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])


def adaptive(length: Any, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """First place, and the one after the last, of each of `count` windows that PyTorch's adaptive pools lay over
    `length` places: from ⌊i·length/count⌋ to ⌈(i+1)·length/count⌉. int64."""
    number = torch.arange(count)
    begins = torch.div(number * length, count, rounding_mode="floor")
    ends = torch.div((number + 1) * length + count - 1, count, rounding_mode="floor")
    return begins, ends


def longest(length: Any, count: int) -> Any:
    """The length of the longest of those windows, or one more."""
    if isinstance(length, int):
        return max(-(-(i + 1) * length // count) - i * length // count for i in range(count)) if count else 0
    return (length + count - 1) // count + 1
