"""Sizes of matrices, symbolic ones among them."""

from __future__ import annotations

from typing import Any

import torch

Size = Any
"""An int or a `torch.SymInt`; torch's own annotations do not know the second."""


def smaller(matrix: torch.Tensor) -> Size:
    """The smaller one of rows and columns."""
    least: Any = torch.sym_min
    return least(matrix.shape[-2], matrix.shape[-1])


def batch(*matrices: torch.Tensor) -> list[Size]:
    """The dimensions before the last two, broadcast."""
    broadcast: Any = torch.broadcast_shapes
    return list(broadcast(*(matrix.shape[:-2] for matrix in matrices)))


def is_empty(tensor: torch.Tensor) -> bool:
    """Whether the tensor is known to have no elements."""
    return any(isinstance(size, int) and size == 0 for size in tensor.shape)


def identity(rows: Size, columns: Size, like: torch.Tensor) -> torch.Tensor:
    """Ones on the diagonal, with the dtype of `like`."""
    places = torch.arange(rows, device=like.device).unsqueeze(-1) == torch.arange(columns, device=like.device)
    return places.to(like.dtype)


def wider(tensor: torch.Tensor, axis: int, more: Size, filling: float = 0.0) -> torch.Tensor:
    """The tensor with `more` places at the end of an axis, counted from the back."""
    if isinstance(more, int) and more == 0:
        return tensor
    shape = list(tensor.shape)
    shape[axis] = more
    return torch.cat([tensor, torch.full(shape, filling, dtype=tensor.dtype, device=tensor.device)], axis)
