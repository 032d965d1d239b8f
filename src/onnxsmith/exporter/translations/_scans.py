"""States that are handed on along an axis: ONNX Scan, by way of torch's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def scan(step: Callable[..., Any], state: Sequence[torch.Tensor], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Runs along the first axis of `tensors`, at least one. `step(*state, *slices)` gives the next state, as a tuple;
    the result are the states after each slice, stacked."""

    def body(*given: torch.Tensor) -> list[torch.Tensor]:
        following = [_plain(one) for one in step(*given)]
        return [*following, *(one.clone() for one in following)]

    start = [_plain(one) for one in state]
    found = torch.ops.higher_order.scan(body, start, [_plain(one) for one in tensors], ())
    return tuple(found[len(start) :])


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Loops take tensors only in the one layout that ONNX has, and none of them twice."""
    return tensor.clone(memory_format=torch.contiguous_format)
