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
