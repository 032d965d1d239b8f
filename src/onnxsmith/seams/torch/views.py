"""Views of dynamic sizes, told apart from each other with fewer questions.

What a view of a tensor looks like torch finds out dimension by dimension: is this one as long as that, does it divide
it, is it 1. Where sizes are quotients and remainders of others, each answer takes algebra, and a model that cuts an
image into windows takes minutes. For sizes that depend on data torch has another way, which compares the whole and asks
back only where that does not do. Here it serves every symbolic size.

Compared with torch 2.11 to 2.13. Where the name is gone, such models take their minutes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from onnxsmith.seams.base import replaced_at

_UNBACKED = "torch._subclasses.fake_impls:_view_has_unbacked_input"
REACHES = (_UNBACKED,)


def cheap_views() -> AbstractContextManager[None]:
    """Inside, views of symbolic sizes are worked out in that way."""
    return replaced_at(_UNBACKED, _has_symbols)


def _has_symbols(tensor: torch.Tensor, shape: Any) -> bool:
    flat = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
    return any(isinstance(size, torch.SymInt) for size in (*tensor.shape, *tensor.stride(), *flat))
