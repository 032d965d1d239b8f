"""Scans along an axis, by torch's scan, which becomes ONNX's Scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._loops import own_copy


def scan(step: Callable[..., Any], state: Sequence[torch.Tensor], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Runs along the first axis of `tensors`, at least one. `step(*state, *slices)` gives the next state, as a tuple;
    the result are the states after each slice, stacked."""

    def body(*given: torch.Tensor) -> list[torch.Tensor]:
        following = [own_copy(one) for one in step(*given)]
        return [*following, *(one.clone() for one in following)]

    start = [own_copy(one) for one in state]
    found = torch.ops.higher_order.scan(body, start, [own_copy(one) for one in tensors], ())
    return tuple(found[len(start) :])
