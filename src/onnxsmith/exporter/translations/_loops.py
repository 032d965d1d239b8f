"""Repeats a computation: unrolled for a few rounds, otherwise as an ONNX Loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnxsmith.base.seams.torch.operators import while_loop_op
from onnxsmith.exporter.translations._tensors import is_empty

UNROLLED = 4
"""Limits the rounds that are unrolled. A choice: small matrices of geometry (rotations, poses) then need no
Loop."""

Index = int | torch.Tensor
"""Is the number of a round: a 0-d int64 tensor inside a loop."""


def repeat(
    count: Any,
    body: Callable[..., Sequence[torch.Tensor]],
    carried: Sequence[torch.Tensor],
    fixed: Sequence[torch.Tensor] = (),
) -> list[torch.Tensor]:
    """Repeats `carried = body(index, *carried, *fixed)` for `count` rounds and returns `carried`.

    `body` must keep the shapes and dtypes of `carried`. It may use tensors and sizes of its arguments only.
    """
    if isinstance(count, int) and (count <= UNROLLED or all(is_empty(one) for one in carried)):
        for index in range(count):
            carried = body(index, *carried, *fixed)
        return list(carried)

    def goes_on(index: torch.Tensor, limit: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return index < limit

    def around(index: torch.Tensor, limit: torch.Tensor, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return index + 1, limit.clone(), *body(index, *given)

    limit = torch.full((), count, dtype=torch.int64)
    _, _, *found = loop(goes_on, around, [torch.zeros((), dtype=torch.int64), limit, *carried], fixed)
    return found


def loop(
    goes_on: Callable[..., torch.Tensor],
    body: Callable[..., Sequence[torch.Tensor]],
    carried: Sequence[torch.Tensor],
    fixed: Sequence[torch.Tensor] = (),
) -> list[torch.Tensor]:
    """Repeats `carried = body(*carried, *fixed)` while `goes_on(*carried, *fixed)` is true, and returns `carried`."""

    def own(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(own_copy(one) for one in body(*given))

    run: Any = while_loop_op
    found: Sequence[torch.Tensor] = run(goes_on, own, tuple(own_copy(one) for one in carried), tuple(fixed))
    return list(found)


def any_of(mask: torch.Tensor) -> torch.Tensor:
    """Whether any element is true. False for an empty mask, for which ONNX Runtime's ReduceMax is undefined."""
    return mask.to(torch.int64).sum() > 0


def own_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a contiguous copy. A tensor that a loop carries must not share memory or change its strides."""
    return tensor.clone(memory_format=torch.contiguous_format)


def column(matrix: torch.Tensor, index: Index) -> torch.Tensor:
    """Returns a column as a vector."""
    if isinstance(index, int):
        return matrix.select(-1, index)
    return matrix.index_select(-1, index.reshape(1)).squeeze(-1)


def row(matrix: torch.Tensor, index: Index) -> torch.Tensor:
    """Returns a row as a vector."""
    return column(matrix.mT, index)
