"""Loops whose number of steps is known only when the model runs: ONNX Scan and Loop, by way of torch's own."""

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


def repeat(
    step: Callable[..., Any], goes_on: Callable[..., torch.Tensor], state: Sequence[torch.Tensor], *fixed: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """The last of the states that `step(*state, *fixed)` gives one after the other while `goes_on(*state, *fixed)`,
    a bool without axes. Shapes and dtypes stay those of `state`."""

    def body(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(_plain(one) for one in step(*given))

    start = tuple(_plain(one) for one in state)
    found: Any = torch.ops.higher_order.while_loop(goes_on, body, start, tuple(_plain(one) for one in fixed))
    return tuple(found)


def is_empty(tensor: torch.Tensor) -> bool:
    """Whether it has no elements for certain: then there is nothing to loop over."""
    return any(isinstance(size, int) and size == 0 for size in tensor.shape)


def left(mask: torch.Tensor) -> torch.Tensor:
    """Whether any element is true; of no elements, none is (ONNX Runtime's ReduceMax of nothing is whatever)."""
    return mask.to(torch.int64).sum() > 0


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Loops take tensors only in the one layout that ONNX has, and none of them twice."""
    return tensor.clone(memory_format=torch.contiguous_format)
