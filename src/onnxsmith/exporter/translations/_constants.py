"""Tensors of fixed numbers inside a translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxsmith.base.seams.torch.tensors import unheard


def constant(values: Sequence[Any] | float, dtype: torch.dtype) -> torch.Tensor:
    """A tensor of `values`. `torch.tensor` cannot be traced in a translation: it changes its result in place."""
    with unheard():
        made = torch.tensor(values, dtype=dtype)
    lifted: torch.Tensor = torch.ops.aten.lift_fresh_copy.default(made)
    return lifted


def look_up(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The rows of `table` at `places`, int64 of any shape."""
    return table.index_select(0, places.reshape(-1)).reshape((*places.shape, *table.shape[1:]))
