"""Tensors of fixed numbers inside a translation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from onnxsmith.base.seams.torch.tensors import unheard


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
