"""Views of dynamic sizes, told apart from each other with fewer questions.

What a view of a tensor looks like torch finds out dimension by dimension: is this one as long as that, does it divide
it, is it 1. Where sizes are quotients and remainders of others, each answer takes algebra, and a model that cuts an
image into windows takes minutes. For sizes that depend on data torch has another way, which compares the whole and asks
back only where that does not do. It serves every symbolic size. The name is torch's private one; a test notices when it
is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch._subclasses import fake_impls as _views

_UNBACKED = "_view_has_unbacked_input"


@contextmanager
def cheap_views() -> Iterator[None]:
    """Inside, views of symbolic sizes are worked out in that way."""
    if not hasattr(_views, _UNBACKED):
        yield
        return
    with mock.patch.object(_views, _UNBACKED, _has_symbols):
        yield


def _has_symbols(tensor: torch.Tensor, shape: Any) -> bool:
    flat = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
    return any(isinstance(size, torch.SymInt) for size in (*tensor.shape, *tensor.stride(), *flat))
