"""Computes views of dynamic sizes faster, while a module is traced.

torch computes the strides of a view dimension by dimension, and asks of each size whether it equals another, divides
it, or is 1. If sizes are quotients and remainders of other sizes, each answer takes algebra: a model that cuts an image
into windows takes minutes to trace. For sizes that depend on data, torch has a second algorithm, which compares whole
shapes first. Here it is used for every symbolic size.

Compared with torch 2.11 to 2.14. If the name is gone, such models take minutes to trace.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from onnxsmith.base.seams.base import replaced_at

_UNBACKED = "torch._subclasses.fake_impls:_view_has_unbacked_input"
REACHES = (_UNBACKED,)


def cheap_views() -> AbstractContextManager[None]:
    """Makes torch use its second algorithm for views of symbolic sizes while the block runs."""
    return replaced_at(_UNBACKED, _has_symbols)


def _has_symbols(tensor: torch.Tensor, shape: Any) -> bool:
    flat = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
    return any(isinstance(size, torch.SymInt) for size in (*tensor.shape, *tensor.stride(), *flat))
