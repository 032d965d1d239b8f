"""Tensors of fixed numbers inside a translation, and sizes of matrices, which may be symbolic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxsmith.base.seams.torch.tensors import unheard

Size = Any
"""Is an int or a `torch.SymInt`, which torch's own annotations leave out."""


def smaller(matrix: torch.Tensor) -> Size:
    """Returns the smaller of the numbers of rows and columns."""
    least: Any = torch.sym_min
    return least(matrix.shape[-2], matrix.shape[-1])


def batch(*matrices: torch.Tensor) -> list[Size]:
    """Returns the broadcast dimensions before the last two."""
    broadcast: Any = torch.broadcast_shapes
    return list(broadcast(*(matrix.shape[:-2] for matrix in matrices)))


def is_empty(tensor: torch.Tensor) -> bool:
    """Whether the tensor is known to have no elements."""
    return any(isinstance(size, int) and size == 0 for size in tensor.shape)


def identity(rows: Size, columns: Size, like: torch.Tensor) -> torch.Tensor:
    """Returns a matrix with ones on the diagonal and zeros elsewhere, with the dtype of `like`."""
    places = torch.arange(rows, device=like.device).unsqueeze(-1) == torch.arange(columns, device=like.device)
    return places.to(like.dtype)


def wider(tensor: torch.Tensor, axis: int, more: Size, filling: float = 0.0) -> torch.Tensor:
    """Appends `more` elements equal to `filling` to an axis, which is counted from the last."""
    if isinstance(more, int) and more == 0:
        return tensor
    shape = list(tensor.shape)
    shape[axis] = more
    return torch.cat([tensor, torch.full(shape, filling, dtype=tensor.dtype, device=tensor.device)], axis)


def constant(values: Sequence[Any] | float, dtype: torch.dtype) -> torch.Tensor:
    """Returns a tensor of `values`. A trace cannot follow `torch.tensor` here, because it changes its result in
    place."""
    with unheard():
        made = torch.tensor(values, dtype=dtype)
    lifted: torch.Tensor = torch.ops.aten.lift_fresh_copy.default(made)
    return lifted


def look_up(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Returns the rows of `table` at `places`, int64 of any shape."""
    return table.index_select(0, places.reshape(-1)).reshape((*places.shape, *table.shape[1:]))
